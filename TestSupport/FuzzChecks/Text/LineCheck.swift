import RequestText

/// A stream is split into the same lines in whatever pieces it comes, and no more is kept than the
/// longest line that is allowed.
///
/// An input is the largest length of a line, then a seed for the pieces, then the stream.
enum LineCheck {
    static func run(_ input: [UInt8], trace: ((String) -> Void)?) throws(CheckFailure) {
        let maximumBytes = Int(input.first ?? 0)
        var seed = UInt64(input.dropFirst().first ?? 0)
        let stream = Array(input.dropFirst(2))
        let expected = lines(of: stream, maximumBytes: maximumBytes)
        trace?("\(maximumBytes) bytes at most: \(expected)")

        var splitter = LineSplitter(maximumBytes: maximumBytes)
        var found: [Line] = []
        func take(_ number: Int, _ line: UnsafeRawBufferPointer?) {
            found.append(Line(number: number, bytes: line.map { Array($0) }))
        }
        var start = 0
        while start < stream.count {
            seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let end = min(stream.count, start + 1 + Int(seed >> 60))
            stream[start..<end].withUnsafeBytes { piece in
                var offset = 0
                while splitter.next(in: piece, from: &offset, take) != nil {}
            }
            try CheckFailure.unless(
                splitter.keptBytes <= maximumBytes,
                "\(splitter.keptBytes) bytes are kept of a line of \(maximumBytes)")
            start = end
        }
        _ = splitter.finish(take)
        try CheckFailure.unless(found == expected, "\(stream) is split into \(found)")
    }

    private struct Line: Equatable {
        var number: Int
        /// `nil` when it is too long.
        var bytes: [UInt8]?
    }

    /// The splitter of ten lines.
    private static func lines(of stream: [UInt8], maximumBytes: Int) -> [Line] {
        stream.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated()
            .compactMap { index, line in
                if line.count > maximumBytes { return Line(number: index + 1, bytes: nil) }
                let isBlank = line.allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
                return isBlank ? nil : Line(number: index + 1, bytes: Array(line))
            }
    }
}
