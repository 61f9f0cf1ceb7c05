import COpenSSL
import Glibc

/// The cipher contexts that all connections of one thread share. A connection itself holds only its
/// keys.
///
/// An OpenSSL context takes some 900 bytes per direction. Setting another key in it takes 130 to
/// 150 ns (AES in hardware), a fortieth of a small send. So there is one context per algorithm and
/// direction, and it gets another key when another connection uses it.
public struct RecordCiphers: ~Copyable {
    /// A context and the number of the key that is set in it.
    struct Slot: BitwiseCopyable {
        var context: OpaquePointer?
        /// Number of the key that is set; 0 for none.
        var keyNumber: UInt64 = 0
    }

    /// Two per algorithm: the one that seals, then the one that opens.
    private let slots: UnsafeMutablePointer<Slot>
    private static var slotCount: Int { 2 * AEADAlgorithm.allCases.count }
    private var lastKeyNumber: UInt64 = 0
    /// A clock in seconds since any moment, which never goes back. It limits how often a peer may
    /// do something costly, and is read for KeyUpdate only.
    let seconds: () -> UInt32

    /// `seconds` is that clock; `nil` takes the system's monotonic clock.
    public init(seconds: (() -> UInt32)? = nil) {
        self.seconds = seconds ?? { Self.monotonicSeconds() }
        slots = .allocate(capacity: Self.slotCount)
        slots.initialize(repeating: Slot(), count: Self.slotCount)
    }

    /// OpenSSL overwrites what it frees.
    deinit {
        for index in 0..<Self.slotCount { EVP_CIPHER_CTX_free(slots[index].context) }
        slots.deallocate()
    }

    private static func monotonicSeconds() -> UInt32 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt32(truncatingIfNeeded: time.tv_sec)
    }

    /// Number of contexts in which a key is set.
    var keysInUse: Int { (0..<Self.slotCount).filter { slots[$0].keyNumber != 0 }.count }

    /// Overwrites the keys with these numbers in the contexts where they are set.
    mutating func forget(_ algorithm: AEADAlgorithm, _ numbers: UInt64...) {
        for isSealing in [true, false] {
            let index = Self.index(algorithm, isSealing)
            guard slots[index].keyNumber != 0, numbers.contains(slots[index].keyNumber) else {
                continue
            }
            var nothing = TrafficKey(key: [], iv: [], sequence: 0)
            _ = withUnsafeBytes(of: InlineArray<12, UInt8>(repeating: 0)) { nonce in
                nonce.baseAddress.map { context(algorithm, &nothing, isSealing: isSealing, $0) }
            }
            slots[index].keyNumber = 0
        }
    }

    /// A number that no key has had before.
    mutating func nextKeyNumber() -> UInt64 {
        lastKeyNumber += 1
        return lastKeyNumber
    }

    /// Encrypts `count` bytes in place and writes the tag behind them. The caller never passes a
    /// nonce twice with one key.
    mutating func seal(
        _ algorithm: AEADAlgorithm, _ key: inout TrafficKey, nonce: UnsafeRawPointer,
        additional: UnsafeRawPointer, additionalCount: Int, bytes: UnsafeMutableRawPointer,
        count: Int
    ) {
        let context = context(algorithm, &key, isSealing: true, nonce)
        let target = bytes.assumingMemoryBound(to: UInt8.self)
        var length: CInt = 0
        var isDone = EVP_EncryptUpdate(
            context, nil, &length, additional.assumingMemoryBound(to: UInt8.self),
            CInt(truncatingIfNeeded: additionalCount))
        isDone &= EVP_EncryptUpdate(
            context, target, &length, target, CInt(truncatingIfNeeded: count))
        isDone &= EVP_EncryptFinal_ex(context, target + count, &length)
        isDone &= hermes_cipher_get_tag(context, target + count)
        precondition(isDone == 1, "sealing \(count) bytes with \(algorithm) failed")
    }

    /// Decrypts `count` bytes, behind which the tag stands; false when the tag does not match.
    mutating func open(
        _ algorithm: AEADAlgorithm, _ key: inout TrafficKey, nonce: UnsafeRawPointer,
        additional: UnsafeRawPointer, additionalCount: Int, bytes: UnsafeRawPointer, count: Int,
        into target: UnsafeMutableRawPointer
    ) -> Bool {
        let context = context(algorithm, &key, isSealing: false, nonce)
        let source = bytes.assumingMemoryBound(to: UInt8.self)
        let target = target.assumingMemoryBound(to: UInt8.self)
        var length: CInt = 0
        var isDone = EVP_DecryptUpdate(
            context, nil, &length, additional.assumingMemoryBound(to: UInt8.self),
            CInt(truncatingIfNeeded: additionalCount))
        isDone &= EVP_DecryptUpdate(
            context, target, &length, source, CInt(truncatingIfNeeded: count))
        isDone &= hermes_cipher_set_tag(context, source + count)
        precondition(isDone == 1, "opening \(count) bytes with \(algorithm) failed")
        return EVP_DecryptFinal_ex(context, target + count, &length) == 1
    }

    /// The context of this algorithm and direction, with this key and this nonce.
    private mutating func context(
        _ algorithm: AEADAlgorithm, _ key: inout TrafficKey, isSealing: Bool,
        _ nonce: UnsafeRawPointer
    ) -> OpaquePointer? {
        let index = Self.index(algorithm, isSealing)
        if slots[index].context == nil { slots[index].context = Self.make(algorithm, isSealing) }
        if key.number == 0 { key.number = nextKeyNumber() }
        let nonce = nonce.assumingMemoryBound(to: UInt8.self)
        let isKeySet = slots[index].keyNumber == key.number
        slots[index].keyNumber = key.number
        let context = slots[index].context
        let result = key.withKey { bytes in
            let newKey = isKeySet ? nil : bytes
            return isSealing
                ? EVP_EncryptInit_ex2(context, nil, newKey, nonce, nil)
                : EVP_DecryptInit_ex2(context, nil, newKey, nonce, nil)
        }
        precondition(result == 1, "the key or nonce for \(algorithm) was not taken")
        return context
    }

    private static func index(_ algorithm: AEADAlgorithm, _ isSealing: Bool) -> Int {
        2 * Int(algorithm.rawValue) + (isSealing ? 0 : 1)
    }

    private static func make(_ algorithm: AEADAlgorithm, _ isSealing: Bool) -> OpaquePointer? {
        let cipher = EVP_CIPHER_fetch(nil, algorithm.name, nil)
        let context = EVP_CIPHER_CTX_new()
        let result =
            isSealing
            ? EVP_EncryptInit_ex2(context, cipher, nil, nil, nil)
            : EVP_DecryptInit_ex2(context, cipher, nil, nil, nil)
        // A handshake with this algorithm has already succeeded, so OpenSSL has it.
        precondition(result == 1, "OpenSSL gave no context for \(algorithm)")
        EVP_CIPHER_free(cipher)
        return context
    }
}
