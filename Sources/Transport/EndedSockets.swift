import Glibc
import Structures

/// Sockets of closed connections that the kernel still has: to close one takes it 10 us and more, and
/// thousands may go at once. Nothing is read from them, and no event reports them.
struct EndedSockets: ~Copyable {
    private var descriptors = RingBuffer<CInt>()

    deinit {
        for place in 0..<descriptors.count { _ = Glibc.close(descriptors[place]) }
    }

    var count: Int { descriptors.count }

    mutating func append(_ descriptor: CInt) { descriptors.append(descriptor) }

    /// Closes the one that ended first, if there is any.
    mutating func closeFirst() {
        if let descriptor = descriptors.popFirst() { _ = Glibc.close(descriptor) }
    }

    /// Closes some, because a descriptor is needed at once; false when there is none.
    mutating func closeSome() -> Bool {
        guard count > 0 else { return false }
        for _ in 0..<min(count, 16) { closeFirst() }
        return true
    }
}
