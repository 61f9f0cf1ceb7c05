/// Bounds the lines of one kind, and their bytes, in each second, whatever they are about.
///
/// Time is an argument: monotonic milliseconds from any origin.
package struct LineBudget: Sendable {
    private let perSecond: Int
    private let bytesPerSecond: Int
    private var second: UInt64 = 0
    private var left: Int
    private var bytesLeft: Int
    private var heldBack = 0

    package init(perSecond: Int, bytesPerSecond: Int = .max) {
        self.perSecond = perSecond
        self.bytesPerSecond = bytesPerSecond
        left = perSecond
        bytesLeft = bytesPerSecond
    }

    /// The lines that ``take(bytes:atMilliseconds:)`` would give now, whatever their bytes.
    package func available(atMilliseconds now: UInt64) -> Int {
        now / 1_000 == second ? left : perSecond
    }

    /// Asks for a line of about so many bytes; returns the number of lines that were refused since the
    /// last one, or `nil` to leave this one out.
    package mutating func take(bytes: Int = 0, atMilliseconds now: UInt64) -> Int? {
        if now / 1_000 != second {
            second = now / 1_000
            left = perSecond
            bytesLeft = bytesPerSecond
        }
        guard left > 0, bytesLeft > 0 else {
            heldBack += 1
            return nil
        }
        left -= 1
        bytesLeft -= bytes
        defer { heldBack = 0 }
        return heldBack
    }
}
