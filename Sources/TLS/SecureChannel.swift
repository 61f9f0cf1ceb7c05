/// The record layer of one connection after its handshake: encrypts and decrypts application data.
///
/// OpenSSL makes the handshake and hands its keys over. From then on a connection holds no OpenSSL
/// object, which would take 14 KB (docs/decisions/0010). Records are those of RFC 8446, section 5
/// (TLS 1.3), and of RFC 5246, section 6.2, with RFC 5288 and RFC 7905 (TLS 1.2). After a handshake
/// a peer may send data, alerts, and KeyUpdate in TLS 1.3. Anything else ends the connection.
///
/// ```
///            close_notify                    a broken record
/// open ───────────────────> closed    open ──────────────────> failed(alert)
/// ```
public struct SecureChannel: BitwiseCopyable, Sendable {
    public enum Version: UInt8, Sendable, BitwiseCopyable {
        case tls12, tls13
    }

    /// The state of the direction from the peer to the broker.
    public enum State: UInt8, Sendable, BitwiseCopyable {
        case open
        /// The peer has sent close_notify: nothing more will come.
        case closed
        /// The peer has sent an invalid record or an alert; ``alert`` is the broker's answer.
        case failed
    }

    /// Alerts that the broker sends (RFC 8446, section 6).
    public enum Alert: UInt8, Sendable, BitwiseCopyable {
        case closeNotify = 0
        case unexpectedMessage = 10
        case badRecordMAC = 20
        case recordOverflow = 22
        case decodeError = 50
        case noRenegotiation = 100
    }

    /// The result of ``open(_:into:_:)``.
    public struct Opened {
        /// Bytes of the records that were handled.
        public var consumed: Int
        /// Bytes of application data that were written to the target.
        public var produced: Int
    }

    /// Types of records (RFC 8446, section 5.1).
    package enum ContentType {
        package static var alert: UInt8 { 21 }
        package static var handshake: UInt8 { 22 }
        package static var applicationData: UInt8 { 23 }
    }

    /// The largest application data of one record, in bytes.
    public static var largestPlaintext: Int { 16_384 }
    static var headerBytes: Int { 5 }
    /// The largest record that the peer may send, in bytes, header included.
    public static var largestRecord: Int { headerBytes + largestPlaintext + 2_048 }
    /// The most bytes that sealing adds to the data.
    public static var largestOverhead: Int { headerBytes + 8 + 1 + AEADAlgorithm.tagBytes }
    /// The most records in a row without data. A peer that sends more only keeps the broker busy.
    private static var mostIdleRecords: UInt8 { 32 }
    /// A key encrypts at most this many records; RFC 8446, section 5.5 allows AES-GCM 2^24.5 full
    /// ones. TLS 1.2 cannot change its key and continues, as OpenSSL itself does.
    private static var mostRecordsPerKey: UInt64 { 1 << 24 }
    /// A KeyUpdate costs as much as a hundred small records. After a key has opened ``fewRecords``
    /// the peer may change it. Earlier changes are hasty: a peer may make this many at once, and
    /// one more every ``keyUpdateSeconds``.
    private static var mostHastyKeyUpdates: UInt8 { 32 }
    private static var fewRecords: UInt64 { 1_024 }
    private static var keyUpdateSeconds: UInt32 { 10 }

    let version: Version
    let algorithm: AEADAlgorithm
    let digest: KeyDigest
    /// The most data of one record in either direction, in bytes. A client may ask for 512 to 4,096
    /// (RFC 6066, section 4); otherwise it is ``largestPlaintext``.
    public let largestFragment: Int32
    public private(set) var state = State.open
    public private(set) var alert = Alert.closeNotify
    /// True when a KeyUpdate must be sealed before any other record.
    public private(set) var owesKeyUpdate = false
    private var idleRecords: UInt8 = 0
    private var hastyKeyUpdates: UInt8 = 0
    /// Bytes of a KeyUpdate that have come so far; a handshake message may arrive in pieces.
    private var messageCount: UInt8 = 0
    private var message = InlineArray<5, UInt8>(repeating: 0)
    /// Time on the clock of ``RecordCiphers`` up to which elapsed time has been set against hasty
    /// KeyUpdates.
    private var keyUpdatesCountedAt: UInt32 = 0
    private var inbound: TrafficKey
    private var outbound: TrafficKey

    package init(
        _ version: Version, _ algorithm: AEADAlgorithm, _ digest: KeyDigest, inbound: TrafficKey,
        outbound: TrafficKey, largestFragment: Int = Self.largestPlaintext
    ) {
        self.version = version
        self.algorithm = algorithm
        self.digest = digest
        self.largestFragment = Int32(largestFragment)
        self.inbound = inbound
        self.outbound = outbound
    }

    /// True when each record carries a part of its nonce: TLS 1.2 with AES.
    private var sendsNonce: Bool { version == .tls12 && algorithm != .chaCha20Poly1305 }
    private var explicitNonceBytes: Int { sendsNonce ? 8 : 0 }

    /// A channel without keys, as a placeholder.
    public static var none: SecureChannel {
        let key = TrafficKey(key: [], iv: [], sequence: 0)
        return SecureChannel(.tls13, .aes128GCM, .sha256, inbound: key, outbound: key)
    }

    /// Overwrites the keys. The channel must not be used afterwards.
    public mutating func eraseKeys() {
        inbound.erase()
        outbound.erase()
    }

    /// Overwrites the keys, also in the cipher contexts of the thread. The channel must not be used
    /// afterwards.
    public mutating func eraseKeys(_ ciphers: inout RecordCiphers) {
        ciphers.forget(algorithm, inbound.number, outbound.number)
        eraseKeys()
    }

    // MARK: Opening

    /// Opens all whole records of `input` and writes their application data to `target`, which has
    /// room for `input.count` bytes. Stops when ``state`` is no longer `open`.
    public mutating func open(
        _ input: UnsafeRawBufferPointer, into target: UnsafeMutableRawPointer,
        _ ciphers: inout RecordCiphers
    ) -> Opened {
        var opened = Opened(consumed: 0, produced: 0)
        while state == .open, input.count - opened.consumed >= Self.headerBytes {
            let length =
                Int(input[opened.consumed + 3]) << 8 | Int(input[opened.consumed + 4])
            guard length <= largestProtected else {
                fail(.recordOverflow)
                break
            }
            let size = Self.headerBytes + length
            guard input.count - opened.consumed >= size else { break }
            let record = UnsafeRawBufferPointer(
                rebasing: input[opened.consumed..<opened.consumed + size])
            opened.consumed += size
            guard
                let content = openRecord(record, into: target + opened.produced, &ciphers)
            else { break }
            opened.produced += accept(content, at: target + opened.produced, &ciphers)
        }
        return opened
    }

    private var largestProtected: Int {
        switch version {
        case .tls12: Self.largestPlaintext + 2_048
        case .tls13: Self.largestPlaintext + 256
        }
    }

    private struct Content {
        var type: UInt8
        var count: Int
    }

    /// Decrypts and authenticates one record; `nil` for an invalid one, in which case ``state`` is
    /// set.
    private mutating func openRecord(
        _ record: UnsafeRawBufferPointer, into target: UnsafeMutableRawPointer,
        _ ciphers: inout RecordCiphers
    ) -> Content? {
        let count =
            record.count - Self.headerBytes - explicitNonceBytes - AEADAlgorithm.tagBytes
        // In TLS 1.3 the content type is encrypted, so that there is at least one byte.
        guard record[0] == ContentType.applicationData || version == .tls12 else {
            return fail(.unexpectedMessage)
        }
        guard count >= (version == .tls13 ? 1 : 0), let base = record.baseAddress else {
            return fail(.badRecordMAC)
        }
        // In TLS 1.3 the content type and the padding count as well (RFC 8446, section 5.4).
        guard count <= Self.largestPlaintext + (version == .tls13 ? 1 : 0) else {
            return fail(.recordOverflow)
        }
        var nonce = InlineArray<12, UInt8>(repeating: 0)
        if sendsNonce {
            inbound.writeSalt(to: &nonce)
            for index in 0..<8 { nonce[4 + index] = record[Self.headerBytes + index] }
        } else {
            inbound.writeNonce(to: &nonce)
        }
        var additional = InlineArray<13, UInt8>(repeating: 0)
        let additionalCount = writeAdditional(
            &additional, inbound.sequence, header: base.loadUnaligned(as: RecordHeader.self), count)
        let isAuthentic = withUnsafeBytes(of: &nonce) { nonce in
            withUnsafeBytes(of: &additional) { additional in
                guard let nonce = nonce.baseAddress, let additional = additional.baseAddress else {
                    return false
                }
                return ciphers.open(
                    algorithm, &inbound, nonce: nonce, additional: additional,
                    additionalCount: additionalCount,
                    bytes: base + Self.headerBytes + explicitNonceBytes, count: count,
                    into: target)
            }
        }
        guard isAuthentic else { return fail(.badRecordMAC) }
        inbound.sequence += 1
        let content =
            version == .tls13 ? unpad(target, count) : Content(type: record[0], count: count)
        guard let content else { return nil }
        guard content.count <= largestFragment else { return fail(.recordOverflow) }
        return content
    }

    /// In TLS 1.3, the content type is the last byte that is not zero. The zeros behind it are
    /// padding.
    private mutating func unpad(_ target: UnsafeMutableRawPointer, _ count: Int) -> Content? {
        var end = count
        while end > 0, target.load(fromByteOffset: end - 1, as: UInt8.self) == 0 { end -= 1 }
        guard end > 0 else { return fail(.unexpectedMessage) }
        return Content(
            type: target.load(fromByteOffset: end - 1, as: UInt8.self), count: end - 1)
    }

    /// Handles the content of a record and returns how many bytes of it are application data.
    private mutating func accept(
        _ content: Content, at target: UnsafeMutableRawPointer, _ ciphers: inout RecordCiphers
    ) -> Int {
        if content.type == ContentType.applicationData, messageCount == 0 {
            if content.count > 0 { idleRecords = 0 } else { countIdle() }
            return content.count
        }
        let bytes = UnsafeRawBufferPointer(start: target, count: content.count)
        switch content.type {
        case ContentType.alert: accept(alert: bytes)
        case ContentType.handshake: accept(handshake: bytes, &ciphers)
        default: fail(.unexpectedMessage)
        }
        return 0
    }

    private mutating func accept(alert bytes: UnsafeRawBufferPointer) {
        guard bytes.count == 2 else {
            fail(.decodeError)
            return
        }
        switch bytes[1] {
        case Alert.closeNotify.rawValue: state = .closed
        case 90: countIdle()  // user_canceled: close_notify follows.
        default:
            // In TLS 1.2 a warning needs no answer. TLS 1.3 has no warnings.
            if version == .tls12, bytes[0] == 1 { countIdle() } else { state = .failed }
        }
    }

    /// Handles a handshake message. Only KeyUpdate is allowed after the handshake: the broker asks
    /// for no certificate then, and refuses renegotiation (RFC 8446, sections 4.6.2 and 4.6.3).
    private mutating func accept(
        handshake bytes: UnsafeRawBufferPointer, _ ciphers: inout RecordCiphers
    ) {
        guard version == .tls13 else {
            fail(.noRenegotiation)
            return
        }
        guard !bytes.isEmpty else {
            fail(.unexpectedMessage)
            return
        }
        // No byte may follow in the same record, since the next record has another key.
        guard Int(messageCount) + bytes.count <= 5 else {
            fail(.unexpectedMessage)
            return
        }
        for byte in bytes {
            message[Int(messageCount)] = byte
            messageCount += 1
        }
        countIdle()
        guard messageCount == 5 else { return }
        messageCount = 0
        // Type 24, a length of 1, and a flag that asks the broker to change its key too.
        guard message[0] == 24, message[1] == 0, message[2] == 0, message[3] == 1,
            message[4] <= 1
        else {
            fail(.unexpectedMessage)
            return
        }
        guard inbound.sequence >= Self.fewRecords || countHasty(at: ciphers.seconds()) else {
            fail(.unexpectedMessage)
            return
        }
        ciphers.forget(algorithm, inbound.number)
        inbound = inbound.next(algorithm, digest)
        if message[4] == 1 { owesKeyUpdate = true }
    }

    /// Counts a hasty KeyUpdate; false when there were too many in this time.
    private mutating func countHasty(at now: UInt32) -> Bool {
        let regained = (now &- keyUpdatesCountedAt) / Self.keyUpdateSeconds
        keyUpdatesCountedAt &+= regained &* Self.keyUpdateSeconds
        hastyKeyUpdates -= UInt8(min(UInt32(hastyKeyUpdates), regained))
        hastyKeyUpdates += 1
        return hastyKeyUpdates <= Self.mostHastyKeyUpdates
    }

    private mutating func countIdle() {
        idleRecords += 1
        if idleRecords > Self.mostIdleRecords { fail(.unexpectedMessage) }
    }

    @discardableResult
    private mutating func fail(_ alert: Alert) -> Content? {
        state = .failed
        self.alert = alert
        return nil
    }

    // MARK: Sealing

    /// Offset of the content within a record.
    public var contentOffset: Int { Self.headerBytes + explicitNonceBytes }

    /// True when the broker's key must be changed before the next record.
    public var needsKeyUpdate: Bool {
        version == .tls13 && (owesKeyUpdate || outbound.sequence >= Self.mostRecordsPerKey)
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

    /// Seals an alert, which is the last record from the broker. Returns the record's size.
    public mutating func seal(
        _ alert: Alert, in record: UnsafeMutableRawPointer, _ ciphers: inout RecordCiphers
    ) -> Int {
        let level: UInt8 =
            switch alert {
            // No renegotiation is always a warning (RFC 5246, section 7.2.2).
            case .closeNotify, .noRenegotiation: 1
            case .unexpectedMessage, .badRecordMAC, .recordOverflow, .decodeError: 2
            }
        record.storeBytes(of: level, toByteOffset: contentOffset, as: UInt8.self)
        record.storeBytes(of: alert.rawValue, toByteOffset: contentOffset + 1, as: UInt8.self)
        return seal(ContentType.alert, 2, in: record, &ciphers)
    }

    /// Seals a KeyUpdate that asks for none in return, and changes the broker's key. Returns the
    /// record's size.
    public mutating func sealKeyUpdate(
        in record: UnsafeMutableRawPointer, _ ciphers: inout RecordCiphers
    ) -> Int {
        precondition(version == .tls13, "a KeyUpdate in \(version)")
        let message: InlineArray<5, UInt8> = [24, 0, 0, 1, 0]
        for index in 0..<5 {
            record.storeBytes(
                of: message[index], toByteOffset: contentOffset + index, as: UInt8.self)
        }
        let size = seal(ContentType.handshake, 5, in: record, &ciphers)
        ciphers.forget(algorithm, outbound.number)
        outbound = outbound.next(algorithm, digest)
        owesKeyUpdate = false
        return size
    }

    /// Seals content of any type, which stands at ``contentOffset``. Returns the record's size.
    package mutating func seal(
        _ type: UInt8, _ contentCount: Int, in record: UnsafeMutableRawPointer,
        _ ciphers: inout RecordCiphers
    ) -> Int {
        var count = contentCount
        let outerType = version == .tls13 ? ContentType.applicationData : type
        if version == .tls13 {
            record.storeBytes(of: type, toByteOffset: contentOffset + count, as: UInt8.self)
            count += 1
        }
        let protected = explicitNonceBytes + count + AEADAlgorithm.tagBytes
        let header = RecordHeader(type: outerType, protected: protected)
        record.storeBytes(of: header, as: RecordHeader.self)
        var nonce = InlineArray<12, UInt8>(repeating: 0)
        if sendsNonce {
            outbound.writeSalt(to: &nonce)
            for index in 0..<8 {
                let byte = UInt8(truncatingIfNeeded: outbound.sequence >> (56 - 8 * UInt64(index)))
                nonce[4 + index] = byte
                record.storeBytes(
                    of: byte, toByteOffset: Self.headerBytes + index, as: UInt8.self)
            }
        } else {
            outbound.writeNonce(to: &nonce)
        }
        var additional = InlineArray<13, UInt8>(repeating: 0)
        let additionalCount = writeAdditional(
            &additional, outbound.sequence, header: header, count)
        withUnsafeBytes(of: &nonce) { nonce in
            withUnsafeBytes(of: &additional) { additional in
                guard let nonce = nonce.baseAddress, let additional = additional.baseAddress else {
                    preconditionFailure("an array without an address")
                }
                ciphers.seal(
                    algorithm, &outbound, nonce: nonce, additional: additional,
                    additionalCount: additionalCount, bytes: record + contentOffset, count: count)
            }
        }
        outbound.sequence += 1
        return Self.headerBytes + protected
    }

    /// Writes the bytes that are authenticated beside the content, and returns their number. In TLS
    /// 1.3 that is the header as sent (RFC 8446, section 5.2); in TLS 1.2 sequence number, type,
    /// version and length of the plaintext (RFC 5246, section 6.2.3.3).
    private func writeAdditional(
        _ bytes: inout InlineArray<13, UInt8>, _ sequence: UInt64, header: RecordHeader,
        _ plaintext: Int
    ) -> Int {
        switch version {
        case .tls13:
            for index in 0..<5 { bytes[index] = header.bytes[index] }
            return 5
        case .tls12:
            for index in 0..<8 {
                bytes[index] = UInt8(truncatingIfNeeded: sequence >> (56 - 8 * UInt64(index)))
            }
            for index in 0..<3 { bytes[8 + index] = header.bytes[index] }
            bytes[11] = UInt8(truncatingIfNeeded: plaintext >> 8)
            bytes[12] = UInt8(truncatingIfNeeded: plaintext)
            return 13
        }
    }
}

/// The five bytes before every record: type, version, and length of the protected content.
struct RecordHeader: BitwiseCopyable {
    let bytes: InlineArray<5, UInt8>

    /// Makes a header. TLS 1.3 writes the version of TLS 1.2.
    init(type: UInt8, protected: Int) {
        bytes = [
            type, 3, 3, UInt8(truncatingIfNeeded: protected >> 8),
            UInt8(truncatingIfNeeded: protected),
        ]
    }
}
