import Glibc
import Structures
import TLS

/// A TLS handshake. The reactor watches the socket; its owner runs the steps on another thread.
struct HandshakeStage: BitwiseCopyable {
    /// True while another thread runs a step: the socket stays open, and the kernel reports nothing.
    /// Otherwise the stage waits for bytes from the client, which the kernel reports once.
    var isStepping = false
    /// The listener whose rules for WebSocket the connection must meet; `nil` without WebSocket.
    let webSocket: UInt8?

    init(webSocket: UInt8?) { self.webSocket = webSocket }
}

/// The unfinished handshakes of one reactor, each of which holds a socket.
///
/// They are here because a stage is of trivial type and cannot hold objects of OpenSSL.
struct Handshakes: ~Copyable {
    /// Never read; see the same in ``Reactor``.
    private let addressOnly: any Sendable = ()
    /// By connection index; an entry exists already during a PROXY header.
    private var handshakes: [UInt32: TLSHandshake] = [:]
    private var dueSteps: [Reactor.HandshakeStep] = []
    /// Sockets of connections closed during a handshake step; they close after it.
    private var abandonedSockets: [UInt64: CInt] = [:]

    deinit {
        for descriptor in abandonedSockets.values { _ = Glibc.close(descriptor) }
    }

    /// Includes those of closed connections whose step is running.
    var count: Int { handshakes.count + abandonedSockets.count }
    var abandonedCount: Int { abandonedSockets.count }

    /// Creates a handshake for the connection at `index`.
    mutating func begin(_ index: UInt32, _ context: TLSContext, _ descriptor: CInt) {
        handshakes[index] = TLSHandshake(context, descriptor: descriptor)
    }

    /// Has the owner take the connection's next step, since its socket is ready.
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

    /// Removes and returns the handshake of a connection that has finished it or closes.
    mutating func remove(_ index: UInt32) -> TLSHandshake {
        guard let handshake = handshakes.removeValue(forKey: index) else {
            preconditionFailure("connection \(index) has no handshake")
        }
        return handshake
    }

    /// Takes over the socket of a connection closed during a step, until ``endAbandoned(_:)``.
    mutating func abandon(_ connection: Handle, _ descriptor: CInt) {
        // A step that has not begun does nothing; a running one reads the end of the stream.
        remove(connection.index).abandon()
        SocketShutdown.ofBoth(descriptor)
        abandonedSockets[connection.packed] = descriptor
    }

    /// Ends a step; true when the connection was closed during it, and its socket is closed now.
    mutating func endAbandoned(_ connection: Handle) -> Bool {
        guard let descriptor = abandonedSockets.removeValue(forKey: connection.packed) else {
            return false
        }
        _ = Glibc.close(descriptor)
        return true
    }
}
