import NIOCore
import NIOHTTP1

/// Sends one request on a new connection and takes the answer to it.
final class HTTPExchange: ChannelInboundHandler {
    typealias InboundIn = NIOHTTPClientResponseFull
    typealias OutboundOut = HTTPClientRequestPart

    /// The ends without an answer for which the system has no error.
    enum Failure: Error {
        case timeout
        case connectionClosed
    }

    private let head: HTTPRequestHead
    private let body: ByteBuffer?
    /// Keeps what comes first, an answer or an error.
    private let answer: EventLoopPromise<NIOHTTPClientResponseFull>

    init(
        head: HTTPRequestHead, body: ByteBuffer?,
        answer: EventLoopPromise<NIOHTTPClientResponseFull>
    ) {
        self.head = head
        self.body = body
        self.answer = answer
    }

    func channelActive(context: ChannelHandlerContext) {
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        if let body { context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil) }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        answer.succeed(unwrapInboundIn(data))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        answer.fail(error)
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        answer.fail(Failure.connectionClosed)
    }
}
