import CYAML

/// The events of a YAML text in order, as libyaml's parser finds them.
///
/// libyaml keeps a pointer into its own state, so the state lives at a fixed address.
struct YAMLEvents: ~Copyable {
    /// The beginning or end of a node, or a whole node.
    struct Event {
        enum Kind: Equatable {
            /// `isPlain` means without quotes.
            case scalar(String, isPlain: Bool)
            case alias
            case sequenceStart
            case mappingStart
            /// The end of the innermost sequence or mapping.
            case end
            case streamEnd
            /// The beginning and end of the stream and of a document.
            case other
        }

        let kind: Kind
        /// The anchor of the node, or the anchor that an alias names.
        let anchor: String?
        /// Both count from 1, columns in characters.
        let line: Int
        let column: Int
    }

    private let parser: UnsafeMutablePointer<yaml_parser_t>
    private let lineCount: Int

    /// Starts parsing UTF-8 bytes, which must stay at their address while events are read.
    init(reading bytes: UnsafeBufferPointer<UInt8>) throws(YAMLDocument.SyntaxError) {
        let parser = UnsafeMutablePointer<yaml_parser_t>.allocate(capacity: 1)
        guard yaml_parser_initialize(parser) == 1 else {
            parser.deallocate()
            throw YAMLDocument.SyntaxError(
                line: nil, complaint: "there is no memory to read the YAML",
                cure: "Free some and try again.")
        }
        yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
        yaml_parser_set_input_string(parser, bytes.baseAddress, bytes.count)
        self.parser = parser
        lineCount = bytes.count { $0 == UInt8(ascii: "\n") } + 1
    }

    deinit {
        yaml_parser_delete(parser)
        parser.deallocate()
    }

    /// Reads the next event; throws at a syntax error.
    func next() throws(YAMLDocument.SyntaxError) -> Event {
        var event = yaml_event_t()
        guard yaml_parser_parse(parser, &event) == 1 else { throw syntaxError }
        defer { yaml_event_delete(&event) }
        return converted(event)
    }

    private func converted(_ event: yaml_event_t) -> Event {
        let kind: Event.Kind
        var anchor: UnsafeMutablePointer<yaml_char_t>?
        switch event.type {
        case YAML_SCALAR_EVENT:
            let scalar = event.data.scalar
            // A scalar may contain NUL, so its length is needed.
            let bytes = UnsafeBufferPointer(start: scalar.value, count: scalar.length)
            kind = .scalar(
                String(decoding: bytes, as: UTF8.self),
                isPlain: scalar.style == YAML_PLAIN_SCALAR_STYLE)
            anchor = scalar.anchor
        case YAML_ALIAS_EVENT: (kind, anchor) = (.alias, event.data.alias.anchor)
        case YAML_SEQUENCE_START_EVENT:
            (kind, anchor) = (.sequenceStart, event.data.sequence_start.anchor)
        case YAML_MAPPING_START_EVENT:
            (kind, anchor) = (.mappingStart, event.data.mapping_start.anchor)
        case YAML_SEQUENCE_END_EVENT, YAML_MAPPING_END_EVENT: kind = .end
        case YAML_STREAM_END_EVENT: kind = .streamEnd
        default: kind = .other
        }
        return Event(
            kind: kind, anchor: anchor.map { String(cString: $0) },
            line: line(of: event.start_mark), column: Int(event.start_mark.column) + 1)
    }

    /// libyaml ends an unfinished last line itself, and then names a line behind the text; so it does
    /// behind characters that end a line in YAML alone.
    private func line(of mark: yaml_mark_t) -> Int {
        min(Int(mark.line) + 1, lineCount)
    }

    private var syntaxError: YAMLDocument.SyntaxError {
        let problem = parser.pointee.problem.map { String(cString: $0) } ?? "no memory is left"
        guard [YAML_SCANNER_ERROR, YAML_PARSER_ERROR].contains(parser.pointee.error) else {
            return YAMLDocument.SyntaxError(
                line: nil, complaint: "the YAML cannot be read: \(shown(problem))",
                cure: "Save the file as UTF-8 text.")
        }
        let mark = parser.pointee.problem_mark
        return YAMLDocument.SyntaxError(
            problem, line: line(of: mark), column: Int(mark.column) + 1)
    }
}
