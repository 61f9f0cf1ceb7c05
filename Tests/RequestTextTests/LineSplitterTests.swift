import Testing

@testable import RequestText

@Suite("Lines of a stream")
struct LineSplitterTests {
    /// The lines of the pieces, each with its number; `nil` for one that is too long.
    private func lines(_ pieces: [String], maximumBytes: Int = 8) -> [String] {
        var splitter = LineSplitter(maximumBytes: maximumBytes)
        var lines: [String] = []
        func take(_ number: Int, _ line: UnsafeRawBufferPointer?) {
            let text = line.map { String(decoding: $0, as: UTF8.self) } ?? "too long"
            lines.append("\(number) \(text)")
        }
        for piece in pieces {
            Array(piece.utf8).withUnsafeBytes { bytes in
                var offset = 0
                while splitter.next(in: bytes, from: &offset, take) != nil {}
                #expect(offset == bytes.count)
            }
        }
        _ = splitter.finish(take)
        #expect(splitter.finish(take) == nil)
        return lines
    }

    @Test(
        "lines end with a line feed, the last one also with the stream",
        arguments: [
            ("", []), ("\n", []), ("a", ["1 a"]), ("a\n", ["1 a"]), ("a\nb", ["1 a", "2 b"]),
            ("a\r\nb\r\n", ["1 a\r", "2 b\r"]),
            ("\n \t\n\r\na\n\n", ["4 a"]),
            ("12345678\n123456789\n1\n", ["1 12345678", "2 too long", "3 1"]),
            ("123456789", ["1 too long"]), ("12345678", ["1 12345678"]),
            ("         \na\n", ["1 too long", "2 a"]),
        ])
    func whole(_ text: String, _ expected: [String]) {
        #expect(lines([text]) == expected)
        // Nor does it matter where the pieces end.
        #expect(lines(text.utf8.map { String(decoding: [$0], as: UTF8.self) }) == expected)
        for cut in 0...text.utf8.count {
            let bytes = Array(text.utf8)
            let pieces = [bytes[..<cut], bytes[cut...]].map { String(decoding: $0, as: UTF8.self) }
            #expect(lines(pieces) == expected, "\(cut)")
        }
    }

    @Test("a caller may stop behind any line and go on in the same piece")
    func resumed() {
        var splitter = LineSplitter(maximumBytes: 8)
        Array("a\nb\nc".utf8).withUnsafeBytes { bytes in
            var offset = 0
            #expect(splitter.next(in: bytes, from: &offset) { number, _ in number } == 1)
            #expect(offset == 2 && splitter.count == 1)
            #expect(splitter.next(in: bytes, from: &offset) { number, _ in number } == 2)
            #expect(splitter.next(in: bytes, from: &offset) { number, _ in number } == nil)
            #expect(offset == 5 && splitter.count == 2)
        }
    }

    @Test("of a line that is too long nothing is kept, however long it gets")
    func dropsLongLine() {
        var splitter = LineSplitter(maximumBytes: 100)
        let piece = [UInt8](repeating: 0x61, count: 99)
        for _ in 1...1_000 {
            piece.withUnsafeBytes { bytes in
                var offset = 0
                #expect(splitter.next(in: bytes, from: &offset) { _, _ in } == nil)
            }
            #expect(splitter.keptBytes <= 100)
        }
        #expect(splitter.finish { _, line in line == nil } == true)
    }
}
