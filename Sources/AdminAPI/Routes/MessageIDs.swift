import Glibc
import Synchronization

/// Makes identifiers of messages. It fetches random numbers from the system many at a time, because
/// calls of the kernel for each identifier took a fifth of the time of a message of a batch.
final class MessageIDs: Sendable {
    private let random = Mutex(RandomBlock())

    func make(unixMilliseconds: Int64) -> MessageID {
        random.withLock { MessageID.make(unixMilliseconds: unixMilliseconds, using: &$0) }
    }
}

/// Random numbers of the system, each handed out once.
private struct RandomBlock: RandomNumberGenerator {
    /// As many as getentropy(3) gives at a time.
    private var numbers = [UInt64](repeating: 0, count: 32)
    private var left = 0

    mutating func next() -> UInt64 {
        if left == 0 { refill() }
        left -= 1
        return numbers[left]
    }

    private mutating func refill() {
        left = numbers.count
        let isFilled = numbers.withUnsafeMutableBytes { getentropy($0.baseAddress, $0.count) == 0 }
        guard !isFilled else { return }
        var system = SystemRandomNumberGenerator()
        for index in numbers.indices { numbers[index] = system.next() }
    }
}
