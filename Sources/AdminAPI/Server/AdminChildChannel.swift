import Addresses
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import OperatorLog
import Synchronization

/// Sets up the connections of one listener: Hummingbird's HTTP/1.1 within our guard.
struct AdminChildChannel: ServerChildChannel {
    /// One accepted connection.
    struct Connection: ServerChildChannelValue {
        let channel: any Channel
        /// Stored at the beginning, because a closed channel has lost it.
        let peer: SocketAddress?
        /// `nil` when there is no place for it, and it is only told so.
        let http: HTTP1Channel.Value?
    }

    private let http: HTTP1Channel
    /// `nil` for plain HTTP.
    private let tls: TLSLayer?
    private let limits: HTTPLimits
    private let counters: AdminCounters
    private let connections: OpenConnections
    /// Connections that found no place and are told so.
    private let refused = ConnectionCount()
    private let log: FloodLog

    init(
        responder: @escaping HTTPChannelHandler.Responder, tls: TLSLayer?, limits: HTTPLimits,
        connections: OpenConnections, counters: AdminCounters, log: FloodLog
    ) {
        self.log = log
        self.tls = tls
        self.limits = limits
        self.connections = connections
        self.counters = counters
        http = HTTP1Channel(
            responder: responder,
            configuration: .init(
                httpDecoderConfiguration: .init(
                    maxHeaderFieldSize: limits.headBytes, maxHeaderListSize: limits.headBytes,
                    maxHeaderFieldCount: limits.headFields)))
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Connection> {
        let peer = channel.remoteAddress
        let hasPlace = connections.admit(channel, from: peer)
        do {
            try tls?.install(in: channel)
        } catch {
            return channel.eventLoop.makeFailedFuture(error)
        }
        // Fails only for a closed connection.
        try? channel.syncOptions?.setOption(
            .socketOption(.so_sndbuf), value: limits.sendBufferBytes)
        guard hasPlace else {
            return channel.eventLoop.makeSucceededFuture(
                Connection(channel: channel, peer: peer, http: nil))
        }
        return http.setup(channel: channel, logger: logger).flatMapThrowing { value in
            try ConnectionGuard(limits: limits, peer: peer, connections: connections, log: log)
                .install(in: channel.pipeline.syncOperations)
            return Connection(channel: channel, peer: peer, http: value)
        }
    }

    func handle(value: Connection, logger: Logger) async {
        if let connection = value.http {
            await http.handle(value: connection, logger: logger)
        } else {
            counters.countConnectionRefused()
            log.write(
                .warning, "Admin connection refused: too many are open",
                [LogKeys.adminPeer: "\(IPAddress.text(value.peer))"])
            await refuse(value.channel)
        }
    }

    /// Answers with an error and closes; further input is dropped for a moment.
    private func refuse(_ channel: any Channel) async {
        // Lingering needs descriptors too, so it is skipped under a flood.
        let isOneOfFew = refused.add() <= limits.refusedConnections
        channel.closeFuture.whenComplete { [refused] _ in refused.remove() }
        if isOneOfFew {
            let problem = Problem.tooManyConnections(
                "Every connection of this listener has a request under way.")
            try? await channel.writeAndFlush(Self.wireBytes(problem))
            try? await channel.close(mode: .output)
            channel.eventLoop.scheduleTask(in: limits.linger.timeAmount) {
                channel.close(promise: nil)
            }
        } else {
            channel.close(promise: nil)
        }
        try? await channel.closeFuture.get()
    }

    /// The whole response as bytes, for a connection without encoder.
    static func wireBytes(_ problem: Problem) -> ByteBuffer {
        var document = problem.document
        let status = problem.kind.status
        var head = "HTTP/1.1 \(status.code) \(status.reasonPhrase)\r\n"
        for field in problem.documentHeaders { head += "\(field.name.rawName): \(field.value)\r\n" }
        head += "Content-Length: \(document.readableBytes)\r\nConnection: close\r\n\r\n"
        var bytes = ByteBuffer(string: head)
        bytes.writeBuffer(&document)
        return bytes
    }
}

/// Open connections of some kind.
private final class ConnectionCount: Sendable {
    private let open = Atomic(0)

    /// - Returns: The number including this one.
    func add() -> Int { open.add(1, ordering: .relaxed).newValue }

    func remove() { open.subtract(1, ordering: .relaxed) }
}
