import HermesClientCore
import NIOCore

/// The last handler of a channel: hands its events to the connection.
final class PacketHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let connection: TransportConnection
    /// Otherwise when the stage before tells by ``TransportReady`` that it is ready.
    private let opensWhenActive: Bool
    private var reason: DropReason?

    init(for connection: TransportConnection, opensWhenActive: Bool) {
        self.connection = connection
        self.opensWhenActive = opensWhenActive
    }

    func channelActive(context: ChannelHandlerContext) {
        if opensWhenActive { connection.opened(context.channel) }
        context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        connection.received(unwrapInboundIn(data))
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is TransportReady { connection.opened(context.channel) }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        let reason = DropReason(transportError: error)
        if self.reason == nil { self.reason = reason }
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        connection.closed(reason ?? .closedByPeer)
        context.fireChannelInactive()
    }
}
