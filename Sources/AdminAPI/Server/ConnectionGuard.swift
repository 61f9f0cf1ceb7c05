import Addresses
import BrokerAPI
import Hummingbird
import NIOCore
import NIOHTTP1
import OperatorLog

/// Carries out the decisions of ``HTTPConnectionMachine`` for one connection on its event loop.
///
/// Its handlers are on both sides of the HTTP decoder: ``ByteGate`` sees bytes, ``PartGate`` the
/// parts of requests and responses.
final class ConnectionGuard {
    private let limits: HTTPLimits
    private let peer: SocketAddress?
    private let connections: OpenConnections
    private let log: FloodLog
    private var machine: HTTPConnectionMachine
    private var writeStall: WriteStallMachine
    /// Set while the connection is open.
    private var context: ChannelHandlerContext?
    private var nextTick: Scheduled<Void>?
    /// As ``connections`` knows it.
    private var isBusy = false
    /// True once it has been told to ``connections``.
    private var isPipelining = false
    /// True after a request of HTTP/1.0, which is the last one of its connection.
    private var isFormerVersion = false

    /// `log` is shared by all connections of the listener.
    init(
        limits: HTTPLimits, peer: SocketAddress?, connections: OpenConnections, log: FloodLog
    ) {
        self.limits = limits
        self.peer = peer
        self.connections = connections
        self.log = log
        machine = HTTPConnectionMachine(limits: limits, now: .now())
        writeStall = WriteStallMachine(limit: limits.writeStall.timeAmount)
    }

    /// Installs both handlers around the decoder in Hummingbird's pipeline.
    func install(in pipeline: ChannelPipeline.SynchronousOperations) throws {
        let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
        try pipeline.addHandler(PartGate(self), position: .after(decoder))
        // Above TLS, whose records have other sizes, and below everything else.
        let below = try? pipeline.handler(type: HandshakeWatch.self)
        try pipeline.addHandler(ByteGate(self), position: below.map { .after($0) } ?? .first)
    }

    // MARK: Events of the handlers

    fileprivate func attach(_ context: ChannelHandlerContext) {
        self.context = context
        scheduleTick()
    }

    fileprivate func detach() {
        nextTick?.cancel()
        nextTick = nil
        context = nil
    }

    fileprivate func accepts(bytes count: Int) -> Bool {
        defer { noteBusy() }
        return machine.receiveBytes(count, at: .now()) == .take
    }

    fileprivate func finishParsing() {
        if machine.isHeadTooLarge { fail(Problem(headTooLarge: limits)) }
    }

    fileprivate func wrote(bytes count: Int) {
        writeStall.write(count)
    }

    /// Bytes not taken by the socket.
    fileprivate var unsentBytes: Int {
        guard let options = context?.channel.syncOptions else { return 0 }
        return (try? options.getOption(.bufferedWritableBytes)) ?? 0
    }

    fileprivate func accepts(_ part: HTTPServerRequestPart) -> Bool {
        switch part {
        case .head(let head):
            if let problem = Problem(contradictingTargetOf: head) {
                fail(problem)
                return false
            }
            let isTaken =
                machine.receiveHead(
                    keepsAlive: head.isKeepAlive && !head.isLast, at: .now()) == .take
            if machine.isPipelining, !isPipelining, let context {
                isPipelining = true
                connections.notePipelining(context.channel)
            }
            return isTaken
        case .body(let bytes): return machine.receiveBody(bytes.readableBytes) == .take
        case .end: return machine.receiveEnd(at: .now()) == .take
        }
    }

    /// The part as HTTP/1.1 would have it.
    fileprivate func completed(_ part: HTTPServerRequestPart) -> HTTPServerRequestPart {
        guard case .head(let head) = part, head.isFormerVersion else { return part }
        isFormerVersion = true
        return .head(head.completed(at: context?.channel.localAddress))
    }

    /// Prepares the head of a response for the encoder.
    ///
    /// - Returns: False when the response ends with its head, so that the encoder must write nothing
    ///   at its end: the answer to HEAD where GET has a stream.
    fileprivate func prepare(_ head: inout HTTPResponseHead) -> Bool {
        let isLast = machine.beginResponse() == .announceEnd
        if isLast { head.headers.replaceOrAdd(name: "Connection", value: "close") }
        let isHeadOfStream = head.headers.contains(name: "Transfer-Encoding")
        if isLast, isFormerVersion, !head.headers.contains(name: "Content-Length") {
            // HTTP/1.0 knows no chunks: the body ends with the connection.
            head.version = .http1_0
            head.headers.remove(name: "Transfer-Encoding")
        }
        return !isHeadOfStream
    }

    fileprivate func endResponse() {
        switch machine.endResponse(at: .now()) {
        case .keep: break
        case .linger: context?.close(mode: .output, promise: nil)
        }
        noteBusy()
    }

    /// Tells whether this connection could make room for another without harm to a request.
    private func noteBusy() {
        let isBusy = machine.hasRequest || unsentBytes > 0
        guard isBusy != self.isBusy, let context else { return }
        self.isBusy = isBusy
        connections.setBusy(context.channel, isBusy)
    }

    fileprivate func stop() {
        guard let context else { return }
        switch machine.stop(unsentBytes: unsentBytes, at: .now()) {
        case .close: context.close(promise: nil)
        case .linger: context.close(mode: .output, promise: nil)
        case .report: context.fireErrorCaught(Problem(BrokerUnavailable.stopping))
        case .keep: break
        }
    }

    fileprivate func setAnswering(_ isAnswering: Bool) {
        machine.setAnswering(isAnswering, at: .now())
    }

    fileprivate func fail(_ error: HTTPParserError) {
        fail(
            error == .headerOverflow
                ? Problem(headTooLarge: limits)
                : Problem(malformedRequest: error))
    }

    // MARK: Decisions

    private func fail(_ problem: Problem) {
        switch machine.fail(at: .now()) {
        case .answer: answer(problem)
        case .report: context?.fireErrorCaught(problem)
        case .ignore: break
        }
    }

    private func tick() {
        guard let context else { return }
        let now = NIODeadline.now()
        let unsentBytes = unsentBytes
        if writeStall.tick(bufferedBytes: unsentBytes, at: now) {
            log.write(
                .notice, "Admin connection closed: the client takes no answer",
                [LogKeys.adminPeer: "\(IPAddress.text(peer))"])
            context.close(promise: nil)
            return
        }
        switch machine.tick(unsentBytes: unsentBytes, at: now) {
        case .keep: break
        case .close: context.close(promise: nil)
        case .answerLateHead:
            answer(
                Problem(
                    .requestTimeout,
                    "The request line and headers did not arrive within \(limits.head).",
                    fix: "Send the whole head at once."))
        case .reportLateBody:
            context.fireErrorCaught(
                Problem(
                    .requestTimeout,
                    "The body came too slowly: after \(limits.bodyGrace) its rate must be "
                        + "\(limits.bodyBytesPerSecond) bytes per second or more.",
                    fix: "Send the body faster, or a smaller one."))
        }
        noteBusy()
        scheduleTick()
    }

    private func scheduleTick() {
        nextTick = context?.eventLoop.assumeIsolated().scheduleTask(in: limits.tickInterval) {
            self.tick()
        }
    }

    /// Answers before there is a request to pass on.
    private func answer(_ problem: Problem) {
        guard let context else { return }
        var head = HTTPResponseHead(
            version: .http1_1,
            status: .init(
                statusCode: problem.kind.status.code,
                reasonPhrase: problem.kind.status.reasonPhrase))
        for field in problem.documentHeaders {
            head.headers.add(name: field.name.rawName, value: field.value)
        }
        let document = problem.document
        head.headers.add(name: "Content-Length", value: "\(document.readableBytes)")
        head.headers.add(name: "Connection", value: "close")
        context.write(NIOAny(HTTPServerResponsePart.head(head)), promise: nil)
        context.write(NIOAny(HTTPServerResponsePart.body(.byteBuffer(document))), promise: nil)
        context.writeAndFlush(NIOAny(HTTPServerResponsePart.end(nil)), promise: nil)
        context.close(mode: .output, promise: nil)
    }
}

/// At the socket's end of the pipeline, above TLS: counts bytes, and delays the end of our
/// direction until all are sent.
private final class ByteGate: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    private let connection: ConnectionGuard

    init(_ connection: ConnectionGuard) {
        self.connection = connection
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard connection.accepts(bytes: Self.unwrapInboundIn(data).readableBytes) else { return }
        context.fireChannelRead(data)
        connection.finishParsing()
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        connection.wrote(bytes: Self.unwrapOutboundIn(data).readableBytes)
        context.write(data, promise: promise)
    }

    /// After the client has ended its direction, our end would close the channel and drop unsent
    /// bytes, so it waits for the last one.
    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard mode == .output, connection.unsentBytes > 0 else {
            context.close(mode: mode, promise: promise)
            return
        }
        let sent = context.eventLoop.makePromise(of: Void.self)
        let bound = context.loopBound
        sent.futureResult.whenComplete { _ in
            bound.value.close(mode: .output, promise: promise)
        }
        context.writeAndFlush(Self.wrapOutboundOut(.byteBuffer(ByteBuffer())), promise: sent)
    }
}

/// Above the decoder: sees requests and responses.
private final class PartGate: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private let connection: ConnectionGuard
    /// False while the response is one whose end must not reach the encoder.
    private var encodesEnd = true

    init(_ connection: ConnectionGuard) {
        self.connection = connection
    }

    func handlerAdded(context: ChannelHandlerContext) {
        connection.attach(context)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        connection.detach()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = connection.completed(Self.unwrapInboundIn(data))
        if connection.accepts(part) { context.fireChannelRead(Self.wrapInboundOut(part)) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case let error as HTTPParserError: connection.fail(error)
        case is ByteToMessageDecoderError: break  // bytes after an invalid one
        default: context.fireErrorCaught(error)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // Hummingbird's own handler would close while the client still sends.
        if event is ChannelShouldQuiesceEvent {
            connection.stop()
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }

    func triggerUserOutboundEvent(
        context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?
    ) {
        if let event = event as? StreamIsBusy {
            connection.setAnswering(event.isBusy)
            promise?.succeed()
        } else {
            context.triggerUserOutboundEvent(event, promise: promise)
        }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch Self.unwrapOutboundIn(data) {
        case .head(var head) where head.status.code >= 200:
            encodesEnd = connection.prepare(&head)
            context.write(Self.wrapOutboundOut(.head(head)), promise: promise)
        case .head, .body: context.write(data, promise: promise)
        case .end:
            if encodesEnd {
                context.writeAndFlush(data, promise: promise)
            } else {
                // The encoder would write the last chunk of a body that HEAD does not get.
                context.flush()
                promise?.succeed()
            }
            connection.endResponse()
        }
    }
}
