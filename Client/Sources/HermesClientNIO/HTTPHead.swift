import NIOCore

/// The beginning of an answer in HTTP: status and headers.
struct HTTPHead: Equatable {
    /// More bytes are no answer of a server that means it.
    static let mostBytes = 8_192

    struct Malformed: Error, Equatable {}

    let status: Int
    /// What follows the number, such as "Not Found".
    let phrase: String
    /// Names in lower case.
    private let headers: [(name: String, value: String)]

    static func == (left: Self, right: Self) -> Bool {
        left.status == right.status && left.phrase == right.phrase
            && left.headers.elementsEqual(right.headers, by: ==)
    }

    /// Takes a whole head from the beginning of `buffer`; `nil` asks for more bytes.
    static func take(from buffer: inout ByteBuffer) throws(Malformed) -> HTTPHead? {
        let bytes = buffer.readableBytesView.prefix(mostBytes)
        guard let end = end(of: bytes) else {
            if bytes.count == mostBytes { throw Malformed() }
            return nil
        }
        let text = bytes[bytes.startIndex..<end]
        buffer.moveReaderIndex(forwardBy: end + 4 - bytes.startIndex)
        guard text.allSatisfy({ $0 >= 0x20 || $0 == 0x0D || $0 == 0x0A || $0 == 0x09 }) else {
            throw Malformed()
        }
        let lines = lines(of: text)
        return try HTTPHead(lines)
    }

    private init(_ lines: [String]) throws(Malformed) {
        // HTTP/1.1 101 Switching Protocols
        let words = (lines.first ?? "").split(
            separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard words.count >= 2, words[0] == "HTTP/1.1" || words[0] == "HTTP/1.0",
            words[1].utf8.count == 3, let status = UInt16(words[1]), 100...599 ~= status
        else { throw Malformed() }
        self.status = Int(status)
        phrase = words.count > 2 ? String(words[2]) : ""
        var headers: [(name: String, value: String)] = []
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":"), colon != line.startIndex else {
                throw Malformed()
            }
            headers.append(
                (line[..<colon].lowercased(), Self.trimmed(line[line.index(after: colon)...])))
        }
        self.headers = headers
    }

    /// The values of a header, those of a list one by one, in their order.
    func values(_ name: String) -> [String] {
        headers.filter { $0.name == name }
            .flatMap { $0.value.split(separator: ",").map { Self.trimmed($0) } }
    }

    /// The place of the empty line.
    private static func end(of bytes: ByteBufferView.SubSequence) -> Int? {
        guard bytes.count >= 4 else { return nil }
        return (bytes.startIndex...bytes.endIndex - 4).first { at in
            bytes[at] == 0x0D && bytes[at + 1] == 0x0A && bytes[at + 2] == 0x0D
                && bytes[at + 3] == 0x0A
        }
    }

    private static func lines(of text: ByteBufferView.SubSequence) -> [String] {
        text.split(separator: 0x0A).map { line in
            String(decoding: line.last == 0x0D ? line.dropLast() : line, as: UTF8.self)
        }
    }

    private static func trimmed(_ text: Substring) -> String {
        var text = text
        while let first = text.first, first == " " || first == "\t" { text = text.dropFirst() }
        while let last = text.last, last == " " || last == "\t" { text = text.dropLast() }
        return String(text)
    }
}
