import TLS

/// A minimal model of ``SecureChannel`` as receiver of complete, unchanged records in order.
struct RecordModel {
    private static let mostIdleRecords = 32
    private static let mostHastyKeyUpdates = 32
    /// Records under one key after which a KeyUpdate is not counted as too early.
    private static let fewRecords: UInt64 = 1_024

    let version: SecureChannel.Version
    let largestFragment: Int
    /// Number of records under the present key.
    private(set) var sequence: UInt64
    private(set) var state = SecureChannel.State.open
    private(set) var owesKeyUpdate = false
    /// Application data so far.
    private(set) var plaintextCount = 0
    private var idleRecords = 0
    private var hastyKeyUpdates = 0
    /// The incomplete handshake message.
    private var message: [UInt8] = []

    init(_ version: SecureChannel.Version, largestFragment: Int, sequence: UInt64) {
        self.version = version
        self.largestFragment = largestFragment
        self.sequence = sequence
    }

    /// Takes one record; true when the next one has another key. Zeros may follow `content`.
    mutating func take(_ type: UInt8, _ content: [UInt8]) -> Bool {
        guard state == .open else { return false }
        var (type, content) = (type, content)
        if version == .tls13 {
            let inner = content + [type]
            // The type and padding count towards the length.
            guard inner.count <= SecureChannel.largestPlaintext + 1 else {
                return fail(.recordOverflow)
            }
            guard let end = inner.lastIndex(where: { $0 != 0 }) else {
                return fail(.unexpectedMessage)
            }
            type = inner[end]
            content = [UInt8](inner[..<end])
        }
        sequence += 1
        guard content.count <= largestFragment else { return fail(.recordOverflow) }
        guard message.isEmpty || type == SecureChannel.ContentType.handshake else {
            return fail(.unexpectedMessage)
        }
        switch type {
        case SecureChannel.ContentType.applicationData:
            plaintextCount += content.count
            if content.isEmpty { countIdle() } else { idleRecords = 0 }
            return false
        case SecureChannel.ContentType.alert:
            take(alert: content)
            return false
        case SecureChannel.ContentType.handshake: return take(handshake: content)
        default: return fail(.unexpectedMessage)
        }
    }

    private mutating func take(alert content: [UInt8]) {
        switch (version, content.count, content.first, content.last) {
        case (_, 0, _, _): fail(.unexpectedMessage)
        case (_, 2, _, 0): state = .closed
        case (.tls13, 2, _, 90), (.tls12, 2, 1, _): countIdle()
        case (.tls13, 2, _, _), (.tls12, 2, 2, _): state = .aborted
        case (.tls12, 2, _, _): fail(.illegalParameter)
        default: fail(.decodeError)
        }
    }

    private mutating func take(handshake content: [UInt8]) -> Bool {
        guard version == .tls13 else {
            return fail(content.first == 1 ? .noRenegotiation : .unexpectedMessage)
        }
        message += content
        guard !content.isEmpty, message[0] == 24 else { return fail(.unexpectedMessage) }
        countIdle()
        guard state == .open else { return false }
        guard message.prefix(4).elementsEqual([24, 0, 0, 1].prefix(message.count)) else {
            return fail(.decodeError)
        }
        guard message.count >= 5 else { return false }
        guard message[4] <= 1 else { return fail(.illegalParameter) }
        guard message.count == 5 else { return fail(.unexpectedMessage) }
        if sequence < Self.fewRecords { hastyKeyUpdates += 1 }
        guard hastyKeyUpdates <= Self.mostHastyKeyUpdates else { return fail(.unexpectedMessage) }
        if message[4] == 1 { owesKeyUpdate = true }
        message = []
        sequence = 0
        return true
    }

    private mutating func countIdle() {
        idleRecords += 1
        if idleRecords > Self.mostIdleRecords { fail(.unexpectedMessage) }
    }

    @discardableResult
    private mutating func fail(_ alert: SecureChannel.Alert) -> Bool {
        state = .failed(alert)
        return false
    }
}
