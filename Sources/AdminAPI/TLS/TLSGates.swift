import AdminTLS
import Logging
import NIOCore
import NIOSSL
import NIOTLS

/// Puts TLS under the HTTP of one connection.
struct TLSLayer: Sendable {
    let certificates: AdminCertificates
    let limits: HTTPLimits
    /// For all connections of the listener, so that they do not fill the disk.
    let lines = LogThrottle()

    /// Installs it at the socket's end of an empty pipeline.
    func install(in channel: any Channel, logger: Logger) throws {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(PlainTextGate(limits: limits))
        try pipeline.addHandler(NIOSSLServerHandler(context: certificates.context()))
        try pipeline.addHandler(HandshakeWatch(limits: limits, lines: lines, logger: logger))
    }
}

/// Stands before TLS and answers whoever speaks plain HTTP, in plain HTTP: a browser and curl would
/// show a broken connection otherwise.
private final class PlainTextGate: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = IOData

    private enum State {
        case undecided
        case tls
        /// The answer is out; input is dropped until the connection ends.
        case answered
    }

    private let limits: HTTPLimits
    private var state = State.undecided

    init(limits: HTTPLimits) {
        self.limits = limits
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch state {
        case .tls: context.fireChannelRead(data)
        case .answered: break
        case .undecided:
            let bytes = Self.unwrapInboundIn(data)
            // The type of a handshake record (RFC 8446, section 5.1); methods begin with letters.
            guard let first = bytes.readableBytesView.first, first != 0x16,
                (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(first)
            else {
                state = .tls
                context.fireChannelRead(data)
                return
            }
            state = .answered
            answer(context)
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

/// Stands behind TLS: ends a handshake that takes too long, and says in the log why one failed.
final class HandshakeWatch: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let limits: HTTPLimits
    private let lines: LogThrottle
    private let logger: Logger
    private var deadline: Scheduled<Void>?
    private var isPending = true

    init(limits: HTTPLimits, lines: LogThrottle, logger: Logger) {
        self.limits = limits
        self.lines = lines
        self.logger = logger
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let bound = context.loopBound
        deadline = context.eventLoop.assumeIsolated().scheduleTask(in: limits.handshake.timeAmount)
        {
            guard self.isPending else { return }
            self.report("timeout", bound.value)
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

    /// The layer below closes by itself; what HTTP makes of the end it knows from its own framing,
    /// so that a cut connection is never a whole request.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case is NIOSSLError, is BoringSSLError, is NIOSSLCloseTimedOutError:
            if isPending { report(BoringSSLText.reason(of: error), context) }
        default: context.fireErrorCaught(error)
        }
    }

    private func report(_ reason: String, _ context: ChannelHandlerContext) {
        isPending = false
        guard let suppressed = lines.admit() else { return }
        logger.notice(
            "Admin TLS handshake failed",
            metadata: [
                LogKeys.reason: "\(reason)",
                LogKeys.peer: "\(PeerAddress.text(context.remoteAddress))",
            ].suppressing(suppressed))
    }
}
