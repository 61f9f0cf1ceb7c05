import COpenSSL
import Glibc
import Synchronization

/// The keys that seal session tickets: a client keeps its session, sealed, and hands it back to resume.
///
/// A key seals tickets for ``rotationSeconds``; then a fresh one does, and the former ones still open
/// what they sealed, until ``lifetimeSeconds`` after they were made. So a phone that was here within
/// the last 24 hours resumes, and a key that is stolen opens no more than that: in TLS 1.3 it opens
/// nothing that was said, since a resumed connection has a key exchange of its own.
public final class TicketKeys: Sendable {
    /// One key: 80 random bytes, which are gone when nobody uses it any more, and a time.
    // The bytes are written before anybody else has the key, and when nobody has it any more.
    final class Key: @unchecked Sendable {
        private let bytes: UnsafeMutableRawBufferPointer
        /// Seconds since 1970.
        let madeAt: Int64

        init(at time: Int64) {
            bytes = .allocate(byteCount: nameBytes + 2 * keyBytes, alignment: 16)
            madeAt = time
            let random = bytes.bindMemory(to: UInt8.self)
            // Without random numbers there is no TLS at all.
            precondition(
                RAND_bytes(random.baseAddress, CInt(random.count)) == 1, "no random numbers")
        }

        deinit {
            OPENSSL_cleanse(bytes.baseAddress, bytes.count)
            bytes.deallocate()
        }

        /// Stands in the ticket in the clear.
        var name: UnsafeRawBufferPointer { part(0, nameBytes) }
        /// AES-256.
        var cipherKey: UnsafeRawBufferPointer { part(nameBytes, keyBytes) }
        /// HMAC with SHA-256.
        var macKey: UnsafeRawBufferPointer { part(nameBytes + keyBytes, keyBytes) }

        /// Bytes that live as long as the key.
        private func part(_ offset: Int, _ count: Int) -> UnsafeRawBufferPointer {
            UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + count)])
        }
    }

    static let nameBytes = 16
    static let keyBytes = 32
    package static let rotationSeconds: Int64 = 6 * 3_600
    package static let lifetimeSeconds: Int64 = rotationSeconds + Int64(TLSContext.sessionSeconds)

    /// Newest first, never empty.
    private let keys: Mutex<[Key]>
    private let clock: @Sendable () -> Int64

    /// Makes a first key. `clock` gives seconds since 1970.
    public init(clock: @escaping @Sendable () -> Int64 = { Int64(time(nil)) }) {
        self.clock = clock
        keys = Mutex([Key(at: clock())])
    }

    /// Seconds since 1970.
    var now: Int64 { clock() }

    /// The key that seals now.
    private func current() -> Key {
        let now = clock()
        return keys.withLock { keys in
            if let newest = keys.first, newest.madeAt > now - Self.rotationSeconds { return newest }
            let key = Key(at: now)
            keys.insert(key, at: 0)
            keys.removeAll { $0.madeAt <= now - Self.lifetimeSeconds }
            return key
        }
    }

    private func find(_ name: UnsafePointer<UInt8>) -> (key: Key, isNewest: Bool)? {
        let now = clock()
        let name = [UInt8](UnsafeBufferPointer(start: name, count: Self.nameBytes))
        return keys.withLock { keys in
            keys.firstIndex {
                $0.name.elementsEqual(name) && $0.madeAt > now - Self.lifetimeSeconds
            }
            .map { (keys[$0], $0 == 0 && keys[$0].madeAt > now - Self.rotationSeconds) }
        }
    }

    /// OpenSSL seals a ticket: names the key, gives it, and a fresh nonce. The results are those of
    /// SSL_CTX_set_tlsext_ticket_key_evp_cb(3).
    func seal(
        _ name: UnsafeMutablePointer<UInt8>, _ iv: UnsafeMutablePointer<UInt8>,
        _ cipher: OpaquePointer?, _ mac: OpaquePointer?
    ) -> CInt {
        let key = current()
        return withExtendedLifetime(key) {
            for (index, byte) in key.name.enumerated() { name[index] = byte }
            guard RAND_bytes(iv, 16) == 1,
                EVP_EncryptInit_ex2(cipher, Self.cipher, Self.bytes(key.cipherKey), iv, nil) == 1,
                hermes_ticket_mac_init(mac, key.macKey.baseAddress, key.macKey.count) == 1
            else { return -1 }
            return 1
        }
    }

    /// OpenSSL opens a ticket. With `renews` the client gets another one, so that it never shows one
    /// twice, by which it could be followed (RFC 8446, appendix C.4); an old key's ticket is always
    /// renewed.
    func open(
        _ name: UnsafeMutablePointer<UInt8>, _ iv: UnsafeMutablePointer<UInt8>,
        _ cipher: OpaquePointer?, _ mac: OpaquePointer?, renews: Bool
    ) -> CInt {
        guard let (key, isNewest) = find(name) else { return 0 }
        return withExtendedLifetime(key) {
            guard EVP_DecryptInit_ex2(cipher, Self.cipher, Self.bytes(key.cipherKey), iv, nil) == 1,
                hermes_ticket_mac_init(mac, key.macKey.baseAddress, key.macKey.count) == 1
            else { return -1 }
            return renews || !isNewest ? 2 : 1
        }
    }

    private static func bytes(_ key: UnsafeRawBufferPointer) -> UnsafePointer<UInt8>? {
        key.baseAddress?.assumingMemoryBound(to: UInt8.self)
    }

    private static var cipher: OpaquePointer? { EVP_aes_256_cbc() }
}
