import BrokerTesting
import Structures

/// A connection to a shard without sockets; sent bytes are handled before the call returns.
final class MemoryWire: ConformanceWire {
    private let link: ShardLink
    private let connection: Handle

    init(_ link: ShardLink) {
        self.link = link
        connection = link.open()
    }

    func send(_ bytes: [UInt8]) { link.send(connection, bytes) }

    /// All answers are there at once, so nothing is waited for.
    func receive(within milliseconds: Int) -> [UInt8]? {
        let bytes = link.takeBytes(connection)
        return bytes.isEmpty && link.closed.contains(connection) ? nil : bytes
    }

    func finish() { link.lose(connection) }

    func reset() { link.lose(connection) }

    func pass(milliseconds: Int) {
        // In steps, as a real clock: timers that depend on each other expire in turn.
        let step = max(10, milliseconds / 10_000)
        for _ in 0..<milliseconds / step { link.advance(milliseconds: UInt64(step)) }
        link.advance(milliseconds: UInt64(milliseconds % step))
    }

    func passUntilClosed(within milliseconds: Int) -> Int? {
        for elapsed in 0...milliseconds {
            if link.closed.contains(connection) { return elapsed }
            link.advance(milliseconds: 1)
        }
        return nil
    }
}
