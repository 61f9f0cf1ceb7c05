import PlainText

/// The identifier of a message.
enum MessageID: Sendable, Equatable {
    /// The caller's name for it.
    case given(String)
    /// A UUID that was made for it.
    case made(UInt128)

    var text: String {
        switch self {
        case .given(let text): text
        case .made(let number): Self.text(number)
        }
    }

    /// Longest identifier or key of a caller, in bytes.
    static let maximumLength = 128

    /// A UUID of version 7 (RFC 9562): the time first, so that identifiers sort by age, then 74
    /// random bits.
    static func make(
        unixMilliseconds: Int64, using generator: inout some RandomNumberGenerator
    ) -> MessageID {
        let time = UInt64(bitPattern: unixMilliseconds) & 0xFFFF_FFFF_FFFF
        let high = time << 16 | 0x7000 | generator.next() & 0x0FFF
        let low = 0x8000_0000_0000_0000 | generator.next() & 0x3FFF_FFFF_FFFF_FFFF
        return .made(UInt128(high) << 64 | UInt128(low))
    }

    private static func text(_ number: UInt128) -> String {
        UUIDText.text(
            high: UInt64(truncatingIfNeeded: number >> 64), low: UInt64(truncatingIfNeeded: number))
    }

    /// True for 1 to 128 visible ASCII characters.
    static func isValid(_ text: String) -> Bool {
        (1...maximumLength).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    static func fault(of text: String) -> String {
        "is \"\(text.visible())\"; it must be 1 to \(maximumLength) visible ASCII characters"
    }

    fileprivate static let cure = "Leave it out to have one made."
    static let keyCure = "Make a new one for each message, such as a UUID, and repeat it with it."
}

extension JSONFields {
    /// The caller's `message_id`; `nil` to have one made.
    func messageID() throws(Problem) -> String? {
        guard let text = try string("message_id") else { return nil }
        if MessageID.isValid(text) { return text }
        throw wrong("message_id", MessageID.fault(of: text), fix: MessageID.cure)
    }

    /// The caller's `idempotency_key`; without one, the key in the request's header, which may be
    /// `nil` too. Throws ``Problem`` for both at once.
    func idempotencyKey(header: String? = nil) throws(Problem) -> String? {
        guard let text = try string("idempotency_key") else { return header }
        guard header == nil else {
            throw wrong(
                "idempotency_key", "is given, and so is the header Idempotency-Key",
                fix: "Give one of them.")
        }
        if MessageID.isValid(text) { return text }
        throw wrong("idempotency_key", MessageID.fault(of: text), fix: MessageID.keyCure)
    }
}

extension QueryItems {
    /// The caller's `message_id`; `nil` to have one made.
    func messageID() throws(Problem) -> String? {
        guard let text = self["message_id"] else { return nil }
        if MessageID.isValid(text) { return text }
        throw Problem(
            .invalidQuery, "The query parameter message_id \(MessageID.fault(of: text)).",
            field: "message_id", fix: MessageID.cure)
    }
}
