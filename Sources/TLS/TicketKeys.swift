import COpenSSL
import Glibc
import Synchronization

/// The keys that encrypt session tickets. A client keeps its session as an encrypted ticket and
/// hands it back to resume the session.
///
/// A key encrypts tickets for ``rotationSeconds``; then a new key does. Older keys still decrypt
/// their tickets until ``lifetimeSeconds`` after they were made. So a client that was connected in
/// the last 24 hours can resume, and a stolen key decrypts no tickets beyond that time. In TLS 1.3
/// a stolen key reveals no traffic at all, since a resumed connection has a key exchange of its
/// own.
public final class TicketKeys: Sendable {
    /// One key: 80 random bytes, overwritten when the last user drops the key, and the time when it
    /// was made.
    // The bytes are written only before another thread has the key, and after the last one dropped
    // it.
    final class Key: @unchecked Sendable {
        private let bytes: UnsafeMutableRawBufferPointer
        /// Seconds since 1970.
        let madeAt: Int64

        init(at time: Int64) {
            bytes = .allocate(byteCount: nameBytes + 2 * keyBytes, alignment: 16)
            madeAt = time
            let random = bytes.bindMemory(to: UInt8.self)
            // Without random numbers TLS is impossible.
            precondition(
                RAND_bytes(random.baseAddress, CInt(random.count)) == 1, "no random numbers")
        }

        deinit {
            OPENSSL_cleanse(bytes.baseAddress, bytes.count)
            bytes.deallocate()
        }

        /// Sent unencrypted in each ticket, to find the key again.
        var name: UnsafeRawBufferPointer { part(0, nameBytes) }
        /// For AES-256.
        var cipherKey: UnsafeRawBufferPointer { part(nameBytes, keyBytes) }
        /// For HMAC with SHA-256.
        var macKey: UnsafeRawBufferPointer { part(nameBytes + keyBytes, keyBytes) }

        /// A part of the bytes; valid as long as the key lives.
        private func part(_ offset: Int, _ count: Int) -> UnsafeRawBufferPointer {
            UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + count)])
        }
    }

    static let nameBytes = 16
    static let keyBytes = 32
    package static let rotationSeconds: Int64 = 6 * 3_600
    package static let lifetimeSeconds: Int64 = rotationSeconds + Int64(TLSContext.sessionSeconds)

    /// Newest first; never empty.
    private let keys: Mutex<[Key]>
    private let clock: @Sendable () -> Int64

    /// Makes the first key. `clock` returns seconds since 1970.
    public init(clock: @escaping @Sendable () -> Int64 = { Int64(time(nil)) }) {
        self.clock = clock
        keys = Mutex([Key(at: clock())])
    }

    /// Seconds since 1970.
    var now: Int64 { clock() }

    /// The key that encrypts now; makes a new one when it is time.
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

    /// Prepares OpenSSL to encrypt a ticket: names the key and sets it with a fresh nonce. Returns
    /// a result of SSL_CTX_set_tlsext_ticket_key_evp_cb(3).
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

    /// Prepares OpenSSL to decrypt a ticket. With `renews` the client gets a new ticket, so that it
    /// never shows a ticket twice, by which it could be tracked (RFC 8446, appendix C.4). The
    /// ticket of an old key is always renewed.
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
