import NIOCore

/// Limits of time and space for one HTTP connection.
package struct HTTPLimits: Sendable, Equatable {
    /// From the last response, or from accept, to the first byte of a request.
    package var idle: Duration = .seconds(30)
    /// From accept to the end of the TLS handshake.
    package var handshake: Duration = .seconds(10)
    /// From the first byte of a request to the end of its headers.
    package var head: Duration = .seconds(10)
    /// Bytes of request line and headers.
    package var headBytes = 16 * 1024
    /// Most headers of a request.
    package var headFields = 100
    /// Bytes of the request line's target.
    package var targetBytes = 8 * 1024
    /// Time allowed for a body before its rate counts.
    package var bodyGrace: Duration = .seconds(10)
    /// Lowest average rate of a body after the grace. Of a batch it counts from its last answer.
    package var bodyBytesPerSecond = 4 * 1024
    /// Batches under way at a time, of all listeners.
    package var batches = 16
    /// Viewers of the broker's figures at a time (`GET /v1/events`), of all listeners.
    package var viewers = 32
    /// Time between two snapshots of the broker's figures for these.
    package var snapshotInterval: Duration = .seconds(1)
    /// Time in which a client must take at least one byte of an answer.
    package var writeStall: Duration = .seconds(30)
    /// The kernel's send buffer, which it doubles. It accepts more once a third is free, so that a
    /// client at 4 KiB/s is seen to make progress; by default the kernel would buffer megabytes.
    package var sendBufferBytes = 128 * 1024
    /// Time for which input is dropped after the last response, so that the client can read it.
    package var linger: Duration = .seconds(2)
    /// Connections of the TCP listener.
    package var connections = 256
    /// Connections of the Unix socket.
    package var unixConnections = 64
    /// Connections of a listener that found no place and are told so, at a time.
    package var refusedConnections = 16
    /// Time between two answers to a stranger that does not wait for them.
    package var strangerPause: Duration = .milliseconds(50)
    /// Time for requests in progress during a shutdown.
    package var drain: Duration = .seconds(5)

    package init() {}

    /// Leaves descriptors for the rest of a process that may have few of them: the listeners together
    /// take a third of 512 or fewer.
    package mutating func fit(descriptors: Int) {
        guard descriptors <= 512 else { return }
        connections = min(connections, max(8, descriptors / 4))
        unixConnections = min(unixConnections, max(4, descriptors / 16))
        refusedConnections = min(refusedConnections, max(2, descriptors / 64))
    }

    /// An eighth of the TCP listener's places is for callers without a token alone; half of the others
    /// is the most that callers from one address have.
    var places: ConnectionPlaces {
        let strangers = connections / 8
        return .init(
            all: connections, strangers: strangers,
            callersPerAddress: max(1, (connections - strangers) / 2))
    }

    /// The Unix socket's: there are no strangers behind it, and one address.
    var unixPlaces: ConnectionPlaces {
        .init(all: unixConnections, strangers: 0, callersPerAddress: unixConnections)
    }

    /// Interval of checking deadlines: a quarter of the shortest, from 5 ms to 1 s.
    var tickInterval: TimeAmount {
        let shortest = min(idle, head, bodyGrace, writeStall, linger).timeAmount
        return max(.milliseconds(5), min(.seconds(1), .nanoseconds(shortest.nanoseconds / 4)))
    }
}

extension Duration {
    /// The same span for SwiftNIO.
    var timeAmount: TimeAmount {
        .nanoseconds(components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000)
    }
}
