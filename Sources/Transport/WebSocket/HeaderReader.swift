/// Reads the lines of a request of HTTP/1.1 one after the other (RFC 9112, sections 2.2 and 5).
struct HeaderReader {
    /// A header: its name, and its value without the blanks around it.
    struct Field {
        let name: Slice<UnsafeRawBufferPointer>
        let value: Slice<UnsafeRawBufferPointer>

        /// True for this name, given in lower case.
        func isNamed(_ lowercased: StaticString) -> Bool {
            guard name.count == lowercased.utf8CodeUnitCount else { return false }
            return lowercased.withUTF8Buffer { expected in
                zip(name, expected).allSatisfy { $0.lowercased == $1 }
            }
        }

        /// The elements of a list that commas separate.
        var listed: [[UInt8]] {
            value.split(separator: UInt8(ascii: ",")).map { Array(HeaderReader.trimmed($0)) }
        }
    }

    private var rest: UnsafeRawBufferPointer

    /// Reads `lines`, each of which ends with CR and LF.
    init(_ lines: UnsafeRawBufferPointer) { rest = lines }

    var isAtEnd: Bool { rest.isEmpty }

    /// The next line, without its end. It holds no control characters, but tabs.
    mutating func line() throws(WebSocketFlaw) -> UnsafeRawBufferPointer {
        for offset in rest.indices where rest[offset] < 0x20 || rest[offset] == 0x7F {
            if rest[offset] == 0x09 { continue }
            guard rest[offset] == 0x0D, offset + 1 < rest.count, rest[offset + 1] == 0x0A else {
                throw .malformedRequest
            }
            let line = UnsafeRawBufferPointer(rebasing: rest[..<offset])
            rest = UnsafeRawBufferPointer(rebasing: rest[(offset + 2)...])
            return line
        }
        throw .malformedRequest
    }

    /// The next line as a header. A line that begins with a blank, and so goes on with the one before, is
    /// malformed: its name is none.
    mutating func field() throws(WebSocketFlaw) -> Field {
        let line = try line()
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > 0,
            line[..<colon].allSatisfy(\.isTokenByte)
        else { throw .malformedRequest }
        return Field(name: line[..<colon], value: Self.trimmed(line[(colon + 1)...]))
    }

    private static func trimmed(
        _ text: Slice<UnsafeRawBufferPointer>
    ) -> Slice<UnsafeRawBufferPointer> {
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        var text = text.drop(while: isBlank)
        while let last = text.last, isBlank(last) { text = text.dropLast() }
        return text
    }
}

extension UInt8 {
    /// The byte, or the small letter for a capital one.
    var lowercased: UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) ? self | 0x20 : self
    }

    private var isLetterOrDigit: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }

    /// True for a character of a method or a header's name (RFC 9110, section 5.6.2).
    var isTokenByte: Bool {
        isLetterOrDigit || [UInt8]("!#$%&'*+-.^_`|~".utf8).contains(self)
    }

    var isBase64Digit: Bool {
        isLetterOrDigit || self == UInt8(ascii: "+") || self == UInt8(ascii: "/")
    }
}
