/// The keys of one connection, which seal and open one record at a time.
///
/// Records are those of RFC 8446, section 5 (TLS 1.3), and of RFC 5246, section 6.2, with RFC 5288
/// and RFC 7905 (TLS 1.2). ``SecureChannel`` gives their content its meaning.
struct RecordProtection: BitwiseCopyable, Sendable {
    typealias Alert = SecureChannel.Alert
    typealias ContentType = SecureChannel.ContentType

    /// The decrypted content of a record.
    struct Content {
        var type: UInt8
        var count: Int
    }

    let version: SecureChannel.Version
    private let algorithm: AEADAlgorithm
    private let digest: KeyDigest
    /// The most data of one record in either direction, in bytes.
    let largestFragment: Int32
    private var inbound: TrafficKey
    private var outbound: TrafficKey

    init(
        _ version: SecureChannel.Version, _ algorithm: AEADAlgorithm, _ digest: KeyDigest,
        inbound: TrafficKey, outbound: TrafficKey, largestFragment: Int
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
    private var explicitNonceBytes: Int { sendsNonce ? TrafficKey.explicitNonceBytes : 0 }

    /// Offset of the content within a record.
    var contentOffset: Int { RecordHeader.size + explicitNonceBytes }

    // MARK: Keys

    /// Number of records that the present key of the peer has opened.
    var recordsOpened: UInt64 { inbound.sequence }
    /// Number of records that the present key of the broker has sealed.
    var recordsSealed: UInt64 { outbound.sequence }

    /// The peer has sent a KeyUpdate.
    mutating func changeInboundKey(_ ciphers: inout RecordCiphers) {
        ciphers.forget(algorithm, inbound.number)
        inbound = inbound.next(algorithm, digest)
    }

    /// The broker has sealed a KeyUpdate.
    mutating func changeOutboundKey(_ ciphers: inout RecordCiphers) {
        ciphers.forget(algorithm, outbound.number)
        outbound = outbound.next(algorithm, digest)
    }

    mutating func eraseKeys() {
        inbound.erase()
        outbound.erase()
    }

    mutating func eraseKeys(_ ciphers: inout RecordCiphers) {
        ciphers.forget(algorithm, inbound.number, outbound.number)
        eraseKeys()
    }

    // MARK: Opening

    /// The size of the record with which `bytes` begin, its header included; `nil` without a whole
    /// header. A record that is too long is refused before its content arrives.
    func recordSize(_ bytes: UnsafeRawBufferPointer) throws(Alert) -> Int? {
        guard bytes.count >= RecordHeader.size else { return nil }
        let length = Int(bytes[3]) << 8 | Int(bytes[4])
        let expansion = version == .tls12 ? 2_048 : 256
        guard length <= SecureChannel.largestPlaintext + expansion else { throw .recordOverflow }
        return RecordHeader.size + length
    }

    /// Decrypts and authenticates one record, and writes its content to `target`.
    mutating func open(
        _ record: UnsafeRawBufferPointer, into target: UnsafeMutableRawPointer,
        _ ciphers: inout RecordCiphers
    ) throws(Alert) -> Content {
        let count = record.count - contentOffset - AEADAlgorithm.tagBytes
        // In TLS 1.3 the content type is encrypted, so that there is at least one byte.
        let typeBytes = version == .tls13 ? 1 : 0
        guard record[0] == ContentType.applicationData || version == .tls12 else {
            throw .unexpectedMessage
        }
        guard count >= typeBytes, let base = record.baseAddress else { throw .badRecordMAC }
        // The content type and the padding count as well (RFC 8446, section 5.4).
        guard count <= SecureChannel.largestPlaintext + typeBytes else { throw .recordOverflow }
        let nonce = inboundNonce(base + RecordHeader.size)
        var additional = InlineArray<13, UInt8>(repeating: 0)
        let additionalCount = writeAdditional(
            &additional, inbound.sequence, header: base.loadUnaligned(as: RecordHeader.self), count)
        let isAuthentic = withUnsafeBytes(of: nonce) { nonce in
            withUnsafeBytes(of: additional) { additional in
                guard let nonce = nonce.baseAddress, let additional = additional.baseAddress else {
                    return false
                }
                return ciphers.open(
                    algorithm, &inbound, nonce: nonce, additional: additional,
                    additionalCount: additionalCount, bytes: base + contentOffset, count: count,
                    into: target)
            }
        }
        guard isAuthentic else { throw .badRecordMAC }
        inbound.sequence += 1
        let content =
            switch version {
            case .tls12: Content(type: record[0], count: count)
            case .tls13: try unpad(target, count)
            }
        guard content.count <= largestFragment else { throw .recordOverflow }
        return content
    }

    private func inboundNonce(_ explicit: UnsafeRawPointer) -> InlineArray<12, UInt8> {
        sendsNonce
            ? inbound.nonce(explicit: explicit.loadUnaligned(as: UInt64.self)) : inbound.nonce
    }

    /// In TLS 1.3, the content type is the last byte that is not zero. The zeros behind it are
    /// padding.
    private func unpad(_ target: UnsafeMutableRawPointer, _ count: Int) throws(Alert) -> Content {
        var end = count
        while end > 0, target.load(fromByteOffset: end - 1, as: UInt8.self) == 0 { end -= 1 }
        guard end > 0 else { throw .unexpectedMessage }
        return Content(
            type: target.load(fromByteOffset: end - 1, as: UInt8.self), count: end - 1)
    }

    // MARK: Sealing

    /// Seals content of any type, which stands at ``contentOffset``. Returns the record's size.
    mutating func seal(
        _ type: UInt8, _ contentCount: Int, in record: UnsafeMutableRawPointer,
        _ ciphers: inout RecordCiphers
    ) -> Int {
        var count = contentCount
        var outerType = type
        if version == .tls13 {
            record.storeBytes(of: type, toByteOffset: contentOffset + count, as: UInt8.self)
            count += 1
            outerType = ContentType.applicationData
        }
        let protected = explicitNonceBytes + count + AEADAlgorithm.tagBytes
        let header = RecordHeader(type: outerType, protected: protected)
        record.storeBytes(of: header, as: RecordHeader.self)
        let nonce = outboundNonce(record + RecordHeader.size)
        var additional = InlineArray<13, UInt8>(repeating: 0)
        let additionalCount = writeAdditional(
            &additional, outbound.sequence, header: header, count)
        withUnsafeBytes(of: nonce) { nonce in
            withUnsafeBytes(of: additional) { additional in
                guard let nonce = nonce.baseAddress, let additional = additional.baseAddress else {
                    preconditionFailure("an array without an address")
                }
                ciphers.seal(
                    algorithm, &outbound, nonce: nonce, additional: additional,
                    additionalCount: additionalCount, bytes: record + contentOffset, count: count)
            }
        }
        outbound.sequence += 1
        return RecordHeader.size + protected
    }

    /// The nonce of the broker's next record, whose explicit part is written behind the header.
    private func outboundNonce(_ explicit: UnsafeMutableRawPointer) -> InlineArray<12, UInt8> {
        guard sendsNonce else { return outbound.nonce }
        let bytes = outbound.nextExplicitNonce
        explicit.storeBytes(of: bytes, as: UInt64.self)
        return outbound.nonce(explicit: bytes)
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
    static var size: Int { 5 }
    let bytes: InlineArray<5, UInt8>

    /// Makes a header. TLS 1.3 writes the version of TLS 1.2.
    init(type: UInt8, protected: Int) {
        bytes = [
            type, 3, 3, UInt8(truncatingIfNeeded: protected >> 8),
            UInt8(truncatingIfNeeded: protected),
        ]
    }
}
