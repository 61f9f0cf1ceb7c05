/// The record layer of one connection after its handshake: encrypts and decrypts application data.
///
/// OpenSSL makes the handshake and hands its keys over. From then on a connection holds no OpenSSL
/// object, which would take 14 KB (docs/decisions/0010). After a handshake a peer may send data,
/// alerts, and KeyUpdate in TLS 1.3. Anything else ends the connection.
///
/// ```
///       close_notify              a fatal alert               a broken rule
/// open ──────────────> closed    ───────────────> aborted    ───────────────> failed(alert)
/// ```
/// In `aborted` nothing may be sent any more. In the other states ``sealEnd(in:_:)`` says goodbye.
public struct SecureChannel: BitwiseCopyable, Sendable {
    public enum Version: UInt8, Sendable, BitwiseCopyable {
        case tls12, tls13
    }

    /// The state of the direction from the peer to the broker.
    public enum State: Hashable, Sendable, BitwiseCopyable {
        case open
        /// The peer has sent close_notify: nothing more will come.
        case closed
        /// The peer has sent a fatal alert, which has no answer.
        case aborted
        /// The peer has broken a rule, and the alert tells it which.
        case failed(Alert)
    }

    /// Alerts that the broker sends (RFC 8446, section 6; RFC 5246, section 7.2).
    public enum Alert: UInt8, Error, BitwiseCopyable {
        case closeNotify = 0
        case unexpectedMessage = 10
        case badRecordMAC = 20
        case recordOverflow = 22
        case illegalParameter = 47
        case decodeError = 50
        case noRenegotiation = 100

        var level: AlertLevel {
            switch self {
            case .closeNotify, .noRenegotiation: .warning
            case .unexpectedMessage, .badRecordMAC, .recordOverflow, .illegalParameter,
                .decodeError:
                .fatal
            }
        }
    }

    enum AlertLevel: UInt8 {
        case warning = 1
        case fatal = 2
    }

    /// The result of ``open(_:into:_:)``.
    public struct Opened {
        /// Bytes of the records that were handled.
        public var consumed: Int
        /// Bytes of application data that were written to the target.
        public var produced: Int
        /// The number of records that were handled.
        public var records = 0
    }

    /// Types of records (RFC 8446, section 5.1).
    package enum ContentType {
        package static var alert: UInt8 { 21 }
        package static var handshake: UInt8 { 22 }
        package static var applicationData: UInt8 { 23 }
    }

    /// The largest application data of one record, in bytes.
    public static var largestPlaintext: Int { 16_384 }
    /// The largest record that the peer may send, in bytes, header included.
    public static var largestRecord: Int { RecordHeader.size + largestPlaintext + 2_048 }
    /// The most bytes that sealing adds to the data.
    public static var largestOverhead: Int { RecordHeader.size + 8 + 1 + AEADAlgorithm.tagBytes }
    /// The most bytes that ``sealEnd(in:_:)`` writes.
    public static var largestEnd: Int { 2 * (largestOverhead + 2) }
    /// A key encrypts at most this many records; RFC 8446, section 5.5 allows AES-GCM 2^24.5 full
    /// ones. TLS 1.2 cannot change its key and continues, as OpenSSL itself does.
    private static var mostRecordsPerKey: UInt64 { 1 << 24 }
    /// Description of the alert user_canceled, behind which close_notify comes.
    private static var userCanceled: UInt8 { 90 }
    /// Type of the handshake message ClientHello.
    private static var clientHello: UInt8 { 1 }

    private var protection: RecordProtection
    public private(set) var state = State.open
    /// True when a KeyUpdate must be sealed before any other record.
    public private(set) var owesKeyUpdate = false
    private var keyUpdate = KeyUpdateMessage()
    private var budget = RecordBudget()

    package init(
        _ version: Version, _ algorithm: AEADAlgorithm, _ digest: KeyDigest, inbound: TrafficKey,
        outbound: TrafficKey, largestFragment: Int = Self.largestPlaintext
    ) {
        protection = RecordProtection(
            version, algorithm, digest, inbound: inbound, outbound: outbound,
            largestFragment: largestFragment)
    }

    /// A channel without keys, as a placeholder.
    public static var none: SecureChannel {
        let key = TrafficKey(key: [], iv: [], sequence: 0)
        return SecureChannel(.tls13, .aes128GCM, .sha256, inbound: key, outbound: key)
    }

    var version: Version { protection.version }

    /// The most data of one record in either direction, in bytes. A client may ask for 512 to 4,096
    /// (RFC 6066, section 4); otherwise it is ``largestPlaintext``.
    public var largestFragment: Int { Int(protection.largestFragment) }

    /// Overwrites the keys. The channel must not be used afterwards.
    public mutating func eraseKeys() { protection.eraseKeys() }

    /// Overwrites the keys, also in the cipher contexts of the thread. The channel must not be used
    /// afterwards.
    public mutating func eraseKeys(_ ciphers: inout RecordCiphers) {
        protection.eraseKeys(&ciphers)
    }

    // MARK: Opening

    /// True until the peer's direction has ended.
    public var isOpen: Bool {
        switch state {
        case .open: true
        case .closed, .aborted, .failed: false
        }
    }

    /// Opens all whole records of `input` and writes their application data to `target`, which has
    /// room for `input.count` bytes. Stops when ``state`` is no longer `open`.
    public mutating func open(
        _ input: UnsafeRawBufferPointer, into target: UnsafeMutableRawPointer,
        _ ciphers: inout RecordCiphers
    ) -> Opened {
        var opened = Opened(consumed: 0, produced: 0)
        do throws(Alert) {
            while isOpen {
                let rest = UnsafeRawBufferPointer(rebasing: input[opened.consumed...])
                guard let size = try protection.recordSize(rest), size <= rest.count else { break }
                opened.consumed += size
                opened.records += 1
                let place = target + opened.produced
                let content = try protection.open(
                    UnsafeRawBufferPointer(rebasing: rest[..<size]), into: place, &ciphers)
                opened.produced += try accept(content, at: place, &ciphers)
            }
        } catch {
            state = .failed(error)
        }
        return opened
    }

    /// Handles the content of a record and returns how many bytes of it are application data.
    private mutating func accept(
        _ content: RecordProtection.Content, at place: UnsafeMutableRawPointer,
        _ ciphers: inout RecordCiphers
    ) throws(Alert) -> Int {
        let bytes = UnsafeRawBufferPointer(start: place, count: content.count)
        // No other record may stand between the pieces of a message (RFC 8446, section 5.1).
        guard content.type == ContentType.handshake || !keyUpdate.hasBegun else {
            throw .unexpectedMessage
        }
        switch content.type {
        case ContentType.applicationData:
            if content.count > 0 { budget.noteData() } else { try budget.takeRecordWithoutData() }
            return content.count
        case ContentType.alert: try accept(alert: bytes)
        case ContentType.handshake: try accept(handshake: bytes, &ciphers)
        default: throw .unexpectedMessage
        }
        return 0
    }

    private mutating func accept(alert bytes: UnsafeRawBufferPointer) throws(Alert) {
        // An alert has content (RFC 8446, section 5.4; RFC 5246, section 6.2.1).
        guard !bytes.isEmpty else { throw .unexpectedMessage }
        guard bytes.count == 2 else { throw .decodeError }
        let (level, description) = (AlertLevel(rawValue: bytes[0]), bytes[1])
        switch (version, level) {
        case _ where description == Alert.closeNotify.rawValue: state = .closed
        // In TLS 1.3 the level says nothing, and user_canceled is the only warning.
        case (.tls13, _) where description == Self.userCanceled, (.tls12, .warning):
            try budget.takeRecordWithoutData()
        case (.tls13, _), (.tls12, .fatal): state = .aborted
        case (.tls12, nil): throw .illegalParameter
        }
    }

    /// Handles a piece of a handshake message. Only KeyUpdate is allowed after the handshake: the
    /// broker asks for no certificate then, and refuses renegotiation (RFC 8446, sections 4.6.2 and
    /// 4.6.3; RFC 5246, section 7.4.1.1).
    private mutating func accept(
        handshake bytes: UnsafeRawBufferPointer, _ ciphers: inout RecordCiphers
    ) throws(Alert) {
        guard let type = bytes.first else { throw .unexpectedMessage }
        guard version == .tls13 else {
            throw type == Self.clientHello ? .noRenegotiation : .unexpectedMessage
        }
        try budget.takeRecordWithoutData()
        for index in bytes.indices {
            guard let asksForOurs = try keyUpdate.take(bytes[index]) else { continue }
            // The next record has another key, so no byte may follow in this one.
            guard index == bytes.count - 1 else { throw .unexpectedMessage }
            try budget.takeKeyUpdate(
                afterRecords: protection.recordsOpened, at: ciphers.seconds())
            protection.changeInboundKey(&ciphers)
            if asksForOurs { owesKeyUpdate = true }
        }
    }

    // MARK: Sealing

    /// Offset of the content within a record.
    public var contentOffset: Int { protection.contentOffset }

    /// True when the broker's key must be changed before the next record.
    public var needsKeyUpdate: Bool {
        version == .tls13
            && (owesKeyUpdate || protection.recordsSealed >= Self.mostRecordsPerKey)
    }

    /// Seals `count` bytes of application data, which the caller has written at ``contentOffset``
    /// of `record`: 1 to ``largestFragment`` bytes. Returns the record's size, at most
    /// ``largestOverhead`` more.
    public mutating func seal(
        _ count: Int, in record: UnsafeMutableRawPointer, _ ciphers: inout RecordCiphers
    ) -> Int {
        precondition(count > 0 && count <= largestFragment, "\(count) bytes in a record")
        return seal(ContentType.applicationData, count, in: record, &ciphers)
    }

    /// Seals a KeyUpdate that asks for none in return, and changes the broker's key. Returns the
    /// record's size.
    public mutating func sealKeyUpdate(
        in record: UnsafeMutableRawPointer, _ ciphers: inout RecordCiphers
    ) -> Int {
        precondition(version == .tls13, "a KeyUpdate in \(version)")
        KeyUpdateMessage.write(to: record + contentOffset)
        let size = seal(ContentType.handshake, KeyUpdateMessage.size, in: record, &ciphers)
        protection.changeOutboundKey(&ciphers)
        owesKeyUpdate = false
        return size
    }

    /// Seals the last records of the broker: close_notify, or the alert for a broken rule; nothing
    /// after a fatal alert of the peer. Returns their size, at most ``largestEnd``.
    public mutating func sealEnd(
        in records: UnsafeMutableRawPointer, _ ciphers: inout RecordCiphers
    ) -> Int {
        switch state {
        case .open, .closed: return seal(.closeNotify, in: records, &ciphers)
        case .aborted: return 0
        case .failed(let alert):
            let size = seal(alert, in: records, &ciphers)
            // Behind a warning the connection would go on (RFC 5246, section 7.2.1).
            guard alert.level == .warning else { return size }
            return size + seal(.closeNotify, in: records + size, &ciphers)
        }
    }

    private mutating func seal(
        _ alert: Alert, in record: UnsafeMutableRawPointer, _ ciphers: inout RecordCiphers
    ) -> Int {
        let content = record + contentOffset
        content.storeBytes(of: alert.level.rawValue, as: UInt8.self)
        content.storeBytes(of: alert.rawValue, toByteOffset: 1, as: UInt8.self)
        return seal(ContentType.alert, 2, in: record, &ciphers)
    }

    /// Seals content of any type, which stands at ``contentOffset``. Returns the record's size.
    package mutating func seal(
        _ type: UInt8, _ count: Int, in record: UnsafeMutableRawPointer,
        _ ciphers: inout RecordCiphers
    ) -> Int {
        protection.seal(type, count, in: record, &ciphers)
    }
}
