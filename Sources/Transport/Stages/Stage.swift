import Glibc

/// The stage at which a connection's bytes are taken from its socket.
///
/// ```
/// accepted ──> [proxyHeader] ──┬──> handshake ──> records ──┬──> owner
///                              └──> plain ──────────────────┘
/// ```
/// ``Reactor/begin(_:proxyHeader:tls:)`` chooses the way, a stage's type does its work in a file of its
/// own, and ``StagedSocket`` moves to the next stage.
///
/// A WebSocket stage stands between the owner and ``records(_:)`` or ``plain``. It becomes a case
/// `webSocket` with the index of its record, which holds the carrying stage (records or plain) and the
/// state of its frames, as ``RecordStage`` holds that of TLS records. `begin` gets a parameter for it.
/// The compiler then names every event of ``StagedSocket`` that the stage must answer.
enum Stage: BitwiseCopyable {
    /// Waiting for the PROXY header.
    case proxyHeader(ProxyHeaderStage)
    /// The TLS handshake is in progress.
    case handshake(HandshakeStage)
    /// TLS records carry the application's bytes.
    case records(RecordStage.Index)
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
