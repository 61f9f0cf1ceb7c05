import CYAML

/// The events of a YAML text in order, as libyaml's parser finds them.
///
/// libyaml keeps a pointer to its own state, which therefore has a place of its own in memory.
struct YAMLEvents: ~Copyable {
    /// One event: the beginning or end of a node, or a node by itself.
    struct Event {
        enum Kind: Equatable {
            /// Text, which is plain when it stands without quotes.
            case scalar(String, isPlain: Bool)
            case alias
            case sequenceStart
            case mappingStart
            /// The end of the sequence or mapping that began last.
            case end
            case streamEnd
            /// The beginning of the stream, and where a document begins and ends.
            case other
        }

        let kind: Kind
        /// The name that the node gets, or that an alias repeats.
        let anchor: String?
        /// Both count from 1, columns in characters.
        let line: Int
        let column: Int
    }

    private let parser: UnsafeMutablePointer<yaml_parser_t>

    /// Begins with UTF-8 bytes, which must stay where they are as long as events are read.
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
    }

    deinit {
        yaml_parser_delete(parser)
        parser.deallocate()
    }

    /// Reads the next event; throws where the text is no YAML.
    func next() throws(YAMLDocument.SyntaxError) -> Event {
        var event = yaml_event_t()
        guard yaml_parser_parse(parser, &event) == 1 else { throw syntaxError }
        defer { yaml_event_delete(&event) }
        return Self.converted(event)
    }

    private static func converted(_ event: yaml_event_t) -> Event {
        let kind: Event.Kind
        var anchor: UnsafeMutablePointer<yaml_char_t>?
        switch event.type {
        case YAML_SCALAR_EVENT:
            let scalar = event.data.scalar
            // A scalar may hold NUL, so its length counts.
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
            line: Int(event.start_mark.line) + 1, column: Int(event.start_mark.column) + 1)
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
            problem, line: Int(mark.line) + 1, column: Int(mark.column) + 1)
    }
}
