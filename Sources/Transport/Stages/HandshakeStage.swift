import Glibc
import Structures
import TLS

/// A TLS handshake: the reactor watches the socket, and its owner has the steps run on another thread.
enum HandshakeStage: BitwiseCopyable {
    /// The next bytes are the client's; the kernel reports them once.
    case awaitingClient
    /// Another thread has the handshake: the socket stays open and the kernel reports nothing.
    case stepping
}

/// The handshakes of one reactor that have not ended, each of which holds a socket.
///
/// A stage is of trivial type, so that the objects of OpenSSL have their place here, by connection.
struct Handshakes: ~Copyable {
    /// Never read; see the same in ``Reactor``.
    private let addressOnly: any Sendable = ()
    /// By index of the connection; it begins with the header of a proxy, if one comes before it.
    private var handshakes: [UInt32: TLSHandshake] = [:]
    private var dueSteps: [Reactor.HandshakeStep] = []
    /// Sockets whose connection closed during a step of its handshake: they close when the step ends.
    private var abandonedSockets: [UInt64: CInt] = [:]

    deinit {
        for descriptor in abandonedSockets.values { _ = Glibc.close(descriptor) }
    }

    /// Also counts those of closed connections whose step has not ended.
    var count: Int { handshakes.count + abandonedSockets.count }
    var abandonedCount: Int { abandonedSockets.count }

    /// Makes a handshake for the connection at `index`.
    mutating func begin(_ index: UInt32, _ context: TLSContext, _ descriptor: CInt) {
        handshakes[index] = TLSHandshake(context, descriptor: descriptor)
    }

    /// The connection's socket is ready, so that the owner gets its next step.
    mutating func request(_ connection: Handle) {
        guard let handshake = handshakes[connection.index] else { return }
        dueSteps.append(Reactor.HandshakeStep(connection: connection, handshake: handshake))
    }

    mutating func takeSteps() -> [Reactor.HandshakeStep] {
        guard !dueSteps.isEmpty else { return [] }
        var taken: [Reactor.HandshakeStep] = []
        swap(&taken, &dueSteps)
        return taken
    }

    /// Takes the handshake of a connection that goes on without it, or closes.
    mutating func remove(_ index: UInt32) -> TLSHandshake {
        guard let handshake = handshakes.removeValue(forKey: index) else {
            preconditionFailure("connection \(index) has no handshake")
        }
        return handshake
    }

    /// Takes the socket of a connection that closes during a step, until ``endAbandoned(_:)``.
    mutating func abandon(_ connection: Handle, _ descriptor: CInt) {
        // A step that has not begun does nothing; one that has finds the end of the stream.
        remove(connection.index).abandon()
        _ = shutdown(descriptor, CInt(SHUT_RDWR))
        abandonedSockets[connection.packed] = descriptor
    }

    /// A step of the connection has ended; true when the connection has closed meanwhile, and now its
    /// socket.
    mutating func endAbandoned(_ connection: Handle) -> Bool {
        guard let descriptor = abandonedSockets.removeValue(forKey: connection.packed) else {
            return false
        }
        _ = Glibc.close(descriptor)
        return true
    }
}
