import BrokerTesting
import Structures

/// A connection to a shard without sockets: what it sends is handled before the call returns.
final class MemoryWire: ConformanceWire {
    private let link: ShardLink
    private let connection: Handle

    init(_ link: ShardLink) {
        self.link = link
        connection = link.open()
    }

    func send(_ bytes: [UInt8]) { link.send(connection, bytes) }

    /// Nothing comes later that is not there already, so there is no waiting.
    func receive(within milliseconds: Int) -> [UInt8]? {
        let bytes = link.takeBytes(connection)
        return bytes.isEmpty && link.closed.contains(connection) ? nil : bytes
    }

    func finish() { link.lose(connection) }

    func reset() { link.lose(connection) }

    func pass(milliseconds: Int) {
        // In steps, as the real clock would: timers that depend on each other fire in turn.
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
