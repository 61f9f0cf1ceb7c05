import Structures
import SystemFiles
import TLS

/// The results of a reactor's methods.
extension Reactor {
    public enum Event {
        /// A listener has connections to accept.
        case acceptable(listener: Int)
        /// `isHungUp`: both directions have ended. `hasEnded`: the peer has ended its direction,
        /// reported only after ``stopReading(_:awaitsEnd:)``. Unread bytes can still be read.
        case connection(
            Handle, isReadable: Bool, isWritable: Bool, isHungUp: Bool, hasEnded: Bool)
        /// A mailbox has messages.
        case mailbox
        /// Newcomers have events: ``Reactor/askNewcomers()``.
        case newcomers
        /// The connection has been closed already.
        case stale
    }

    public enum Accepted {
        case connection(Handle)
        /// Closed at once, because no descriptor was free.
        case refused
        /// The client closed before it was accepted; others may wait.
        case gone
        /// The waiting connection could not even be closed, and an immediate retry would fail too.
        case unable(SystemError)
        /// No connection waits.
        case none
    }

    public enum Received {
        /// All input not consumed yet, oldest first; valid until the next ``receive(_:)``.
        case bytes(UnsafeRawBufferPointer)
        case wouldBlock
        case endOfStream
        /// The PROXY header has arrived; further bytes may follow it.
        case proxyHeader
        /// The stream does not begin with a PROXY header: the owner closes the connection.
        case malformedProxyHeader(MalformedProxyHeader)
        /// The peer broke a rule of WebSocket: the owner closes the connection, which tells the peer.
        case brokenWebSocket(WebSocketFlaw)
        case failed(SystemError)
    }

    public enum Sent {
        case all
        /// As much as was asked for; the socket may have room for the rest.
        case part
        /// The socket's buffer is full; an event will report when it has room.
        case blocked
        case failed(SystemError)
    }

    /// ``TLSHandshake/step()``, to run on another thread; its result goes to ``finishStep(_:_:)``.
    public struct HandshakeStep: Sendable {
        public let connection: Handle
        public let handshake: TLSHandshake
    }

    /// The state of a handshake after a step.
    public enum HandshakeProgress {
        case underWay
        /// ``receive(_:)`` and ``send(_:_:)`` carry application data from now on.
        case established(TLSPeer)
        /// The owner closes the connection.
        case failed(TLSFailure)
        /// The connection has been closed already.
        case stale
    }
}
