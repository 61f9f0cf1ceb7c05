import HermesClientCore
import NIOCore

/// Carries the bytes of MQTT in frames of WebSocket: asks for it first, and tells the next handler
/// by ``TransportReady`` when it is granted.
final class WebSocketHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum Phase {
        case idle
        /// The request has been written, with this nonce.
        case asked([UInt8])
        case open
        /// A close frame, or a fault, has ended it; what comes now does not count.
        case over
    }

    private let request: WebSocketRequest
    private let host: String
    /// Otherwise when the stage before tells that it is ready.
    private let asksWhenActive: Bool
    private var phase = Phase.idle
    private var buffer = ByteBuffer()
    private var decoder = WebSocketFrames.Decoder()
    /// The newest ping that has not been answered: one answer is enough (RFC 6455, section 5.5.3).
    private var ping: ByteBuffer?

    /// `host` is what the request names, with a port that is not the usual one.
    init(_ request: WebSocketRequest, host: String, asksWhenActive: Bool) {
        self.request = request
        self.host = host
        self.asksWhenActive = asksWhenActive
    }

    func channelActive(context: ChannelHandlerContext) {
        if asksWhenActive { ask(context) }
        context.fireChannelActive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // The next handler hears of it when the request is granted.
        if event is TransportReady {
            ask(context)
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }

    private func ask(_ context: ChannelHandlerContext) {
        guard case .idle = phase else { return }
        let nonce = (0..<16).map { _ in UInt8.random(in: .min ... .max) }
        phase = .asked(nonce)
        let text = request.text(host: host, nonce: nonce)
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .over = phase { return }
        var bytes = unwrapInboundIn(data)
        buffer.writeBuffer(&bytes)
        if case .asked(let nonce) = phase { readAnswer(context, nonce) }
        if case .open = phase { readFrames(context) }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        buffer.discardReadBytes()
        answerPing(context)
        context.fireChannelReadComplete()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        answerPing(context)
        context.fireChannelWritabilityChanged()
    }

    /// A broker that reads nothing gets no more answers, else they would pile up here.
    private func answerPing(_ context: ChannelHandlerContext) {
        guard case .open = phase, let ping, context.channel.isWritable else { return }
        self.ping = nil
        send(.pong, ping, context, promise: nil)
    }

    private func readAnswer(_ context: ChannelHandlerContext, _ nonce: [UInt8]) {
        do throws(HTTPHead.Malformed) {
            guard let answer = try HTTPHead.take(from: &buffer) else { return }
            if let objection = WebSocketRequest.objection(to: answer, nonce: nonce) {
                return fail(objection, context)
            }
        } catch {
            return fail("the answer to the request is no HTTP", context)
        }
        phase = .open
        context.fireUserInboundEventTriggered(TransportReady())
    }

    private func readFrames(_ context: ChannelHandlerContext) {
        while case .open = phase {
            do throws(WebSocketFrames.Fault) {
                guard let piece = try decoder.next(from: &buffer) else { return }
                switch piece {
                case .data(let data): context.fireChannelRead(wrapInboundOut(data))
                case .ping(let payload): ping = payload
                case .close:
                    sayGoodbye(context)
                    context.close(promise: nil)
                }
            } catch {
                fail("the broker sent \(error.rawValue)", context)
            }
        }
    }

    func write(
        context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?
    ) {
        guard case .open = phase else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        let frame = WebSocketFrames.frame(.binary, unwrapOutboundIn(data), mask: Self.mask)
        context.write(wrapOutboundOut(frame), promise: promise)
    }

    func close(
        context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?
    ) {
        sayGoodbye(context)
        context.close(mode: mode, promise: promise)
    }

    /// A close frame with the code 1000, once.
    private func sayGoodbye(_ context: ChannelHandlerContext) {
        if case .open = phase {
            send(.close, ByteBuffer(bytes: [0x03, 0xE8]), context, promise: nil)
        }
        phase = .over
    }

    private func send(
        _ opcode: WebSocketFrames.Opcode, _ payload: ByteBuffer, _ context: ChannelHandlerContext,
        promise: EventLoopPromise<Void>?
    ) {
        let frame = WebSocketFrames.frame(opcode, payload, mask: Self.mask)
        context.writeAndFlush(wrapOutboundOut(frame), promise: promise)
    }

    private func fail(_ text: String, _ context: ChannelHandlerContext) {
        phase = .over
        context.fireErrorCaught(TransportFault(reason: .webSocketFailed(text)))
    }

    private static var mask: UInt32 { UInt32.random(in: .min ... .max) }
}
