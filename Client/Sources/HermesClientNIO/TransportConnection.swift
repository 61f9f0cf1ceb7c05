import HermesClientCore
import NIOCore

/// One transport connection to the broker, TLS included. All of it is used on its event loop only.
///
/// It tells ``Event/opened`` once at most, bytes between, and ``Event/closed(_:)`` exactly once,
/// also after ``close()``.
package final class TransportConnection {
    package enum Event {
        case opened
        case received([UInt8])
        case closed(DropReason)
    }

    /// Time for what was written before ``close()`` to leave.
    static let closeTime = TimeAmount.seconds(1)
    static let openTime = TimeAmount.seconds(15)

    private let loop: any EventLoop
    private let tell: (Event) -> Void
    private var channel: (any Channel)?
    /// Sockets that are being opened: one for each address of the host that is tried.
    private var attempts: [ObjectIdentifier: any Channel] = [:]
    private var isClosed = false
    private var isClosing = false
    /// Why the broker is not trusted; it stands for any reason that the transport gives.
    private var objection: String?
    /// Bytes that were written and have not left the program.
    package private(set) var pendingBytes = 0

    /// `tell` is called on `loop`.
    package init(on loop: any EventLoop, tell: @escaping (Event) -> Void) {
        self.loop = loop
        self.tell = tell
    }

    /// Begins to open the connection.
    package func open(to dialer: Dialer) {
        let bound = NIOLoopBound(self, eventLoop: loop)
        dialer.connect(on: loop, for: bound).assumeIsolated().whenComplete { result in
            switch result {
            case .success(let channel): self.connected(channel)
            case .failure(let error): self.closed(DropReason(transportError: error))
            }
        }
    }

    package func write(_ bytes: [UInt8]) {
        guard let channel, !isClosing, !isClosed else { return }
        pendingBytes += bytes.count
        let promise = loop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { result in
            self.pendingBytes -= bytes.count
            if case .failure(let error) = result, !self.isClosing {
                self.failed(DropReason(writeError: error))
            } else if self.isClosing, self.pendingBytes == 0 {
                self.end()
            }
        }
        channel.writeAndFlush(channel.allocator.buffer(bytes: bytes), promise: promise)
    }

    /// Closes once what was written has left, after a second at most. Nothing is told from now on
    /// but the end.
    package func close() {
        guard !isClosing, !isClosed else { return }
        isClosing = true
        guard pendingBytes > 0 else {
            end()
            return
        }
        loop.assumeIsolated().scheduleTask(in: Self.closeTime) { self.end() }
    }

    // MARK: Events of the channel

    /// A socket has been made and begins to connect. Throws if nobody wants it any more.
    func attempts(_ channel: any Channel) throws {
        guard !isClosing, !isClosed else { throw ChannelError.ioOnClosedChannel }
        let name = ObjectIdentifier(channel)
        attempts[name] = channel
        channel.closeFuture.assumeIsolated().whenComplete { _ in self.attempts[name] = nil }
    }

    private func connected(_ channel: any Channel) {
        guard !isClosed else {
            // It took longer than the wish for it lasted.
            channel.close(promise: nil)
            return
        }
        attempts = [:]
        self.channel = channel
        if isClosing { end() }
    }

    /// The connection, TLS included, is ready for bytes.
    func opened(_ channel: any Channel) {
        self.channel = channel
        if !isClosing, !isClosed { tell(.opened) }
    }

    func received(_ buffer: ByteBuffer) {
        if !isClosing, !isClosed { tell(.received(Array(buffer.readableBytesView))) }
    }

    /// The broker is not trusted; the transport's own error comes next.
    func object(_ text: String) { objection = text }

    func closed(_ reason: DropReason) {
        guard !isClosed else { return }
        isClosed = true
        tell(.closed(objection.map { .untrusted($0) } ?? reason))
    }

    private func failed(_ reason: DropReason) {
        closed(reason)
        channel?.close(promise: nil)
    }

    /// Closes every socket. While the host's name is looked up there is none, and none is made then.
    private func end() {
        if let channel {
            channel.close(promise: nil)
        } else if attempts.isEmpty {
            closed(.networkFailure)
        } else {
            for channel in attempts.values { channel.close(promise: nil) }
        }
    }
}
