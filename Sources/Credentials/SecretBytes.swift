import Glibc

/// Secret bytes that leave no trace in memory: they are never copied, never moved by growing, and
/// overwritten when the value ends.
package struct SecretBytes: ~Copyable {
    /// The longest password in bytes, by the length field of MQTT.
    package static let maximumByteCount = 65_535

    // Allocated once at full capacity, because a growing buffer leaves its old copy behind. Only
    // this value has the pointer, and frees it in `deinit`.
    private let storage: UnsafeMutableRawBufferPointer
    package private(set) var count = 0

    /// Empty, with room for `capacity` bytes.
    package init(capacity: Int = SecretBytes.maximumByteCount) {
        precondition(capacity > 0, "secret with a capacity of \(capacity) bytes")
        storage = .allocate(byteCount: capacity, alignment: 1)
    }

    /// A copy of `bytes`; the caller still has its own.
    package init(copying bytes: some Collection<UInt8>) {
        self.init(capacity: max(1, bytes.count))
        for byte in bytes { append(byte) }
    }

    deinit {
        if let start = storage.baseAddress { explicit_bzero(start, storage.count) }
        storage.deallocate()
    }

    package var isEmpty: Bool { count == 0 }

    package var isFull: Bool { count == storage.count }

    /// Adds one byte; there must be room for it.
    package mutating func append(_ byte: UInt8) {
        precondition(!isFull, "secret overflows its \(storage.count) bytes")
        storage[count] = byte
        count += 1
    }

    /// Removes the last byte and overwrites it; `nil` when there is none.
    @discardableResult
    package mutating func removeLast() -> UInt8? {
        guard count > 0 else { return nil }
        count -= 1
        let byte = storage[count]
        storage[count] = 0
        return byte
    }

    /// Passes the bytes to `body`, which must not keep them.
    package borrowing func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(UnsafeRawBufferPointer(rebasing: storage[..<count]))
    }

    /// True if both hold the same bytes; takes the same time wherever they differ.
    package borrowing func equals(_ other: borrowing SecretBytes) -> Bool {
        guard count == other.count else { return false }
        var difference: UInt8 = 0
        for index in 0..<count { difference |= storage[index] ^ other.storage[index] }
        return difference == 0
    }
}
