/// Bounds the lines of one kind in each second, whatever they are about.
///
/// Time is an argument: monotonic milliseconds from any origin.
package struct LineBudget: Sendable {
    private let perSecond: Int
    private var second: UInt64 = 0
    private var left: Int
    private var heldBack = 0

    package init(perSecond: Int) {
        self.perSecond = perSecond
        left = perSecond
    }

    /// The lines that ``take(atMilliseconds:)`` would give now.
    package func available(atMilliseconds now: UInt64) -> Int {
        now / 1_000 == second ? left : perSecond
    }

    /// Asks for a line; returns the number of lines that were refused since the last one, or `nil`
    /// to leave this one out.
    package mutating func take(atMilliseconds now: UInt64) -> Int? {
        if now / 1_000 != second {
            second = now / 1_000
            left = perSecond
        }
        guard left > 0 else {
            heldBack += 1
            return nil
        }
        left -= 1
        defer { heldBack = 0 }
        return heldBack
    }
}
