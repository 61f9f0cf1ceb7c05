import AdminTLS
import NIOCore
import NIOSSL
import NIOTLS

/// Adds TLS below the HTTP of one connection.
struct TLSLayer: Sendable {
    let certificates: AdminCertificates
    let limits: HTTPLimits
    /// For all connections of the listener.
    let log: HandshakeLog

    /// Installs TLS at the socket's end of an empty pipeline.
    func install(in channel: any Channel) throws {
        let pipeline = channel.pipeline.syncOperations
        let watch = HandshakeWatch(limits: limits, log: log)
        try pipeline.addHandler(PlainTextGate(limits: limits, watch: watch))
        try pipeline.addHandler(NIOSSLServerHandler(context: certificates.context()))
        try pipeline.addHandler(watch)
    }

    /// Closes a connection, with TLS or without, at once: TLS would wait for the peer's farewell.
    static func sever(_ channel: any Channel) {
        let pipeline = channel.pipeline.syncOperations
        guard let socket = try? pipeline.context(handlerType: PlainTextGate.self) else {
            channel.close(promise: nil)
            return
        }
        (try? pipeline.handler(type: HandshakeWatch.self))?.keepSilent()
        socket.close(promise: nil)
    }
}

/// Answers plain HTTP on the TLS port in plain HTTP; browsers and curl would otherwise show a
/// broken connection.
private final class PlainTextGate: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = IOData

    private enum State {
        case undecided
        case tls
        /// The answer was sent; input is dropped until the end.
        case answered
    }

    private let limits: HTTPLimits
    private let watch: HandshakeWatch
    private var state = State.undecided

    init(limits: HTTPLimits, watch: HandshakeWatch) {
        self.limits = limits
        self.watch = watch
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch state {
        case .tls: context.fireChannelRead(data)
        case .answered: break
        case .undecided:
            guard let first = Self.unwrapInboundIn(data).readableBytesView.first else { return }
            switch first {
            // The type of a handshake record (RFC 8446, section 5.1).
            case 0x16: state = .tls
            // Methods begin with letters.
            case UInt8(ascii: "A")...UInt8(ascii: "Z"):
                state = .answered
                watch.fail(.plainHTTP)
                answer(context)
                return
            // The type of CONNECT, the first packet of MQTT (section 3.1.1). TLS ends it and the rest.
            case 0x10:
                state = .tls
                watch.fail(.plainMQTT)
            default:
                state = .tls
                watch.fail(.notTLS)
            }
            context.fireChannelRead(data)
        }
    }

    private func answer(_ context: ChannelHandlerContext) {
        let problem = Problem(
            .malformedRequest, "This port speaks HTTPS, and the request came in plain HTTP.",
            fix:
                "Write https:// in the URL. A token that was sent has crossed the network unencrypted."
        )
        context.writeAndFlush(
            Self.wrapOutboundOut(.byteBuffer(AdminChildChannel.wireBytes(problem))), promise: nil)
        context.close(mode: .output, promise: nil)
        let end = context.loopBound
        context.eventLoop.scheduleTask(in: limits.linger.timeAmount) {
            end.value.close(promise: nil)
        }
    }
}

/// Above TLS: ends a slow handshake, and logs the reason for a failed one.
final class HandshakeWatch: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let limits: HTTPLimits
    private let log: HandshakeLog
    /// Stored while the channel is open, because a closed one has lost it.
    private var peer: SocketAddress?
    private var deadline: Scheduled<Void>?
    private var isPending = true
    private var isReported = false

    init(limits: HTTPLimits, log: HandshakeLog) {
        self.limits = limits
        self.log = log
    }

    /// Only the first reason counts; later ones follow from it.
    func fail(_ reason: HandshakeLog.Reason) {
        guard isPending, !isReported else { return }
        isReported = true
        log.note(reason, from: peer)
    }

    /// The connection ends for a reason that has been logged.
    func keepSilent() {
        isReported = true
    }

    func handlerAdded(context: ChannelHandlerContext) {
        peer = context.remoteAddress
        let bound = context.loopBound
        deadline = context.eventLoop.assumeIsolated().scheduleTask(in: limits.handshake.timeAmount)
        {
            guard self.isPending else { return }
            self.fail(.timeout)
            bound.value.close(promise: nil)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        deadline?.cancel()
        deadline = nil
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case TLSUserEvent.handshakeCompleted? = event as? TLSUserEvent {
            isPending = false
            deadline?.cancel()
            deadline = nil
        }
        context.fireUserInboundEventTriggered(event)
    }

    /// The layer below closes by itself. HTTP's own framing tells a cut connection from a whole
    /// request.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case is NIOSSLError, is BoringSSLError, is NIOSSLCloseTimedOutError:
            fail(HandshakeLog.Reason(BoringSSLText.reason(of: error)))
        default: context.fireErrorCaught(error)
        }
    }
}
