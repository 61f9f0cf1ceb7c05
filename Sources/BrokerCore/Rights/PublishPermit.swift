import Structures

/// The last topic to which a connection was allowed to publish; publishers tend to reuse one topic.
///
/// Holds the topic, since a hash could collide. The owner calls ``release(in:)`` once.
package struct PublishPermit: BitwiseCopyable {
    /// Longer topics are asked about each time, since every connection may keep one.
    package static var longestTopic: Int { 256 }

    /// The generation of the rules in four bytes, then the topic.
    private let bytes: SharedBytes

    package init(_ topic: UnsafeRawBufferPointer, generation: UInt32, pool: BytePool) {
        bytes = SharedBytes(count: 4 + topic.count, pool: pool)
        bytes.bytes.storeBytes(of: generation, as: UInt32.self)
        if let base = topic.baseAddress {
            (bytes.bytes + 4).copyMemory(from: base, byteCount: topic.count)
        }
    }

    package func isFor(_ topic: UnsafeRawBufferPointer, generation: UInt32) -> Bool {
        guard bytes.bytes.load(as: UInt32.self) == generation else { return false }
        return UnsafeRawBufferPointer(start: bytes.bytes + 4, count: bytes.count - 4)
            .elementsAreEqual(to: topic)
    }

    package func release(in pool: BytePool) { bytes.release(in: pool) }
}
