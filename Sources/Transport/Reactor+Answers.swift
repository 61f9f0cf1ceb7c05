import Structures
import TLS

/// The values that a reactor answers with.
extension Reactor {
    public enum Event {
        /// A listener has connections to accept.
        case acceptable(listener: Int)
        /// `isHungUp` says that the peer is gone in both directions, `hasEnded` that it has ended its own,
        /// which only ``stopReading(_:awaitsEnd:)`` asks for; reading finds the bytes that it left.
        case connection(
            Handle, isReadable: Bool, isWritable: Bool, isHungUp: Bool, hasEnded: Bool)
        /// A mailbox has messages.
        case mailbox
        /// For a connection that has been closed meanwhile.
        case stale
    }

    public enum Accepted {
        case connection(Handle)
        /// Closed at once: no descriptor was left for it.
        case refused
        /// The client left while it waited; the next one may be fine.
        case gone
        /// The waiting client cannot even be refused: trying again at once would find the same.
        case unable(SystemError)
        /// No client waits.
        case none
    }

    public enum Received {
        /// Everything that has not been consumed, oldest first; valid until the next ``receive(_:)``.
        case bytes(UnsafeRawBufferPointer)
        case wouldBlock
        case endOfStream
        /// The header of a proxy has arrived; the bytes behind it may be there as well.
        case proxyHeader
        /// Something else came in its place: the owner closes the connection.
        case malformedProxyHeader(MalformedProxyHeader)
        case failed(SystemError)
    }

    public enum Sent {
        case all
        /// The socket takes no more; an event will say when it does.
        case blocked
        case failed(SystemError)
    }

    /// A handshake that can go on; ``TLSHandshake/step()`` belongs on another thread, and its outcome
    /// goes to ``finishStep(_:_:)``.
    public struct HandshakeStep: Sendable {
        public let connection: Handle
        public let handshake: TLSHandshake
    }

    /// The state of a handshake after a step.
    public enum HandshakeProgress {
        case underWay
        /// From here on, ``receive(_:)`` and ``send(_:_:)`` carry application data.
        case established(TLSPeer)
        /// The owner closes the connection.
        case failed(TLSFailure)
        /// The connection was closed meanwhile.
        case stale
    }
}
