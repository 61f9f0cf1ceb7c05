import Glibc

/// The stage at which a connection's bytes are taken from its socket.
///
/// ```
/// accepted ──> [proxyHeader] ──┬──> handshake ──> records ──┬──> [webSocket] ──> owner
///                              └──> plain ──────────────────┘
/// ```
/// ``Reactor/begin(_:proxyHeader:tls:webSocket:)`` chooses the way, a stage's type does its work in a file of its
/// own, and ``StagedSocket`` moves to the next stage.
///
/// A stage of WebSocket stands between the owner and the stage that carries its frames, ``records(_:)``
/// or ``plain``, and passes that stage's events on.
enum Stage: BitwiseCopyable {
    /// Waiting for the PROXY header.
    case proxyHeader(ProxyHeaderStage)
    /// The TLS handshake is in progress.
    case handshake(HandshakeStage)
    /// TLS records carry the application's bytes.
    case records(RecordStage.Index)
    /// Frames of WebSocket, over TLS records or not, carry the application's bytes.
    case webSocket(WebSocketStage.Index)
    /// The application's bytes are sent and received unchanged.
    case plain
}

/// The result of one read by a stage; ``Reactor`` adds the peer's address to a failure.
enum StageInput: BitwiseCopyable {
    /// All bytes that the owner has not consumed, oldest first.
    case bytes(UnsafeRawBufferPointer)
    case wouldBlock
    case endOfStream
    /// The whole PROXY header has arrived.
    case proxyHeader(ProxyHeader)
    case malformedProxyHeader(MalformedProxyHeader)
    /// The next step of the handshake is due on another thread.
    case stepIsDue
    /// A TLS record of the peer ended the connection.
    case brokenRecord
    /// The peer broke a rule of WebSocket.
    case brokenWebSocket(WebSocketFlaw)
    case failed(code: CInt)

    /// The result of a `recv` that returned `count` of at most 0, with `code` as `errno`.
    static func nothing(_ count: Int, _ code: CInt) -> StageInput {
        if count == 0 { return .endOfStream }
        if code == EAGAIN || code == EWOULDBLOCK || Workbench.isShortage(code) {
            return .wouldBlock
        }
        return .failed(code: code)
    }
}

/// The result of sending a stage's output.
enum StageOutput: BitwiseCopyable {
    case all
    /// The socket's buffer is full.
    case blocked
    /// The next step of the handshake is due on another thread; nothing is sent before its end.
    case stepIsDue
    case failed(code: CInt)
}
