import BrokerAPI
import Credentials

extension PublishIdentity {
    /// The identity of a caller's message; `nil` when the caller gave neither a key nor an
    /// identifier.
    ///
    /// - Parameters:
    ///   - publication: The message.
    ///   - content: What the caller asked to have published, if the payload says more.
    ///   - seconds: The span after which it expires, as the caller gave it.
    ///   - id: Its identifier. Beside a key it is only a name, which a repeat must give too.
    ///   - key: The caller's key.
    ///   - caller: The caller, to whom the key belongs.
    ///   - delivery: The time at which it is published, as the caller gave it.
    ///   - push: To whom and over which time it is sent without subscriptions; empty for a message
    ///     to subscribers.
    init?(
        of publication: Publication, content: [UInt8]? = nil, expiresInSeconds seconds: Int64?,
        id: MessageID, key: String?, caller: Caller?, delivery: String? = nil, push: [[UInt8]] = []
    ) {
        let given: String? = if case .given(let text) = id { text } else { nil }
        guard let text = key ?? given else { return nil }
        var name = DigestInput()
        name.append(caller?.name ?? "")
        name.append(key == nil ? "message_id" : "Idempotency-Key")
        name.append(text)
        var asked = DigestInput()
        asked.append(publication.topic)
        asked.append(content ?? publication.payload)
        asked.append([publication.qos.rawValue, publication.retain ? 1 : 0])
        asked.append(seconds.map { "\($0)" } ?? "")
        asked.append(given ?? "")
        if let delivery { asked.append(delivery) }
        if let collapseKey = publication.collapseKey {
            asked.append(withUnsafeBytes(of: collapseKey.littleEndian) { [UInt8]($0) })
        }
        if publication.wake != .byRules { asked.append("wake \(publication.wake.name)") }
        if !publication.properties.isEmpty {
            asked.append("properties")
            asked.append(publication.properties)
        }
        if !push.isEmpty {
            asked.append("push")
            for part in push { asked.append(part) }
        }
        let made: UInt128 = if case .made(let number) = id { number } else { 0 }
        self.init(
            key: name.digest, digest: asked.digest, messageID: made, isExplicit: key != nil)
    }
}

/// Parts of a text, each behind its length, so that no other parts make the same text.
struct DigestInput {
    private var bytes: [UInt8] = []

    mutating func append(_ part: some Collection<UInt8>) {
        withUnsafeBytes(of: UInt64(part.count).littleEndian) { bytes.append(contentsOf: $0) }
        bytes.append(contentsOf: part)
    }

    mutating func append(_ part: String) { append(part.utf8) }

    /// The first 16 bytes of the SHA-256 digest.
    var digest: UInt128 { SHA256Digest(of: bytes).leading }
}
