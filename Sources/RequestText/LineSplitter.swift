import Glibc

/// Splits a stream of bytes into lines, in whatever pieces it comes.
///
/// A line that lies within one piece is handed out in place; one that spans pieces is collected, up
/// to the largest length. What is longer is dropped as it comes, up to its end. Lines end with a
/// line feed; blank lines count, and are not handed out.
package struct LineSplitter {
    /// The largest length of a line in bytes, without its line feed.
    package let maximumBytes: Int
    /// The beginning of the line that has not ended.
    private var begun: [UInt8] = []
    /// True while the line that has not ended is too long.
    private var isTooLong = false
    /// Lines that have ended.
    package private(set) var count = 0

    /// Bytes kept of the line that has not ended; at most ``maximumBytes``.
    package var keptBytes: Int { begun.count }

    package init(maximumBytes: Int) {
        self.maximumBytes = maximumBytes
    }

    /// Calls `take` with the next line that ends in `bytes` at `offset` or behind it, and its number
    /// from 1; with `nil` for a line that is too long. Moves `offset` behind that line. The bytes
    /// are valid during the call only.
    ///
    /// - Returns: What `take` returns; `nil` when all of `bytes` is taken and no more line ends.
    package mutating func next<Result>(
        in bytes: UnsafeRawBufferPointer, from offset: inout Int,
        _ take: (Int, UnsafeRawBufferPointer?) -> Result
    ) -> Result? {
        while offset < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
            guard let length = Self.lineFeed(in: rest) else {
                offset = bytes.count
                begin(with: rest)
                return nil
            }
            offset += length + 1
            if let result = end(UnsafeRawBufferPointer(rebasing: rest[..<length]), take) {
                return result
            }
        }
        return nil
    }

    /// Calls `take` with the last line, if the stream has ended without its line feed.
    package mutating func finish<Result>(
        _ take: (Int, UnsafeRawBufferPointer?) -> Result
    ) -> Result? {
        guard isTooLong || !begun.isEmpty else { return nil }
        return end(UnsafeRawBufferPointer(start: nil, count: 0), take)
    }

    /// Keeps the beginning of a line that goes on in the next piece.
    private mutating func begin(with part: UnsafeRawBufferPointer) {
        guard !isTooLong, begun.count + part.count <= maximumBytes else {
            isTooLong = true
            begun = []
            return
        }
        begun.append(contentsOf: part)
    }

    /// Ends a line with its last part; `nil` for a blank one.
    private mutating func end<Result>(
        _ part: UnsafeRawBufferPointer, _ take: (Int, UnsafeRawBufferPointer?) -> Result
    ) -> Result? {
        count += 1
        if isTooLong || begun.count + part.count > maximumBytes {
            isTooLong = false
            begun = []
            return take(count, nil)
        }
        if begun.isEmpty { return Self.isBlank(part) ? nil : take(count, part) }
        begun.append(contentsOf: part)
        // Kept for the next line, unless it is much.
        defer { begun.removeAll(keepingCapacity: begun.count <= 65_536) }
        return begun.withUnsafeBytes { [count] in Self.isBlank($0) ? nil : take(count, $0) }
    }

    private static func lineFeed(in bytes: UnsafeRawBufferPointer) -> Int? {
        guard let base = bytes.baseAddress, let found = memchr(base, 0x0A, bytes.count) else {
            return nil
        }
        return UnsafeRawPointer(found) - base
    }

    /// True for a line of nothing but spaces, tabs and carriage returns.
    private static func isBlank(_ line: UnsafeRawBufferPointer) -> Bool {
        line.allSatisfy { $0 == 0x20 || $0 == 0x0D || $0 == 0x09 }
    }
}
