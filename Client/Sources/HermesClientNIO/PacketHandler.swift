import HermesClientCore
import NIOCore
import NIOTLS

/// The last handler of a channel: hands its events to the connection.
final class PacketHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let connection: TransportConnection
    /// `nil`: the channel is ready as soon as it is active. Otherwise it is ready when the TLS
    /// handshake is complete and this finds the broker trusted; it returns the objection.
    private let objection: (() -> String?)?
    private var reason: DropReason?

    init(for connection: TransportConnection, afterHandshake objection: (() -> String?)? = nil) {
        self.connection = connection
        self.objection = objection
    }

    func channelActive(context: ChannelHandlerContext) {
        if objection == nil { connection.opened(context.channel) }
        context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        connection.received(unwrapInboundIn(data))
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent, let objection {
            if let text = objection() {
                fail(.untrusted(text), context)
            } else {
                connection.opened(context.channel)
            }
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fail(DropReason(transportError: error), context)
    }

    func channelInactive(context: ChannelHandlerContext) {
        connection.closed(reason ?? .closedByPeer)
        context.fireChannelInactive()
    }

    private func fail(_ reason: DropReason, _ context: ChannelHandlerContext) {
        if self.reason == nil { self.reason = reason }
        context.close(promise: nil)
    }
}
