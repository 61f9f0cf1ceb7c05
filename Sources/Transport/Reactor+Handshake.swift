import CLinux
import Glibc
import Structures
import TLS

/// TLS handshakes: the reactor watches the socket, and its owner has the steps run on another thread.
extension Reactor {
    struct PendingHandshake {
        let handshake: TLSHandshake
        /// Another thread has it: the socket stays open and nothing is asked of the kernel.
        var isUnderWay: Bool
    }

    /// A handshake that can go on; ``TLSHandshake/step()`` belongs on another thread, and its outcome
    /// goes to ``finishStep(_:_:)``.
    public struct HandshakeStep: Sendable {
        public let connection: Handle
        public let handshake: TLSHandshake
    }

    /// How far a handshake is.
    public enum HandshakeProgress {
        case underWay
        /// From here on, ``receive(_:)`` and ``send(_:_:)`` carry application data.
        case established(TLSPeer)
        /// The owner closes the connection.
        case failed(TLSFailure)
        /// The connection was closed meanwhile.
        case stale
    }

    /// Has a connection speak TLS from its next byte on; nothing of it may have been read or sent.
    public mutating func secure(_ handle: Handle, with context: TLSContext) {
        guard slots[handle.index].generation == handle.generation else { return }
        precondition(slots[handle.index].security == Self.plain, "a connection secured twice")
        slots[handle.index].security = Self.handshaking
        handshakes[handle.index] = PendingHandshake(
            handshake: TLSHandshake(context, descriptor: slots[handle.index].descriptor),
            isUnderWay: false)
    }

    /// Handshakes whose next step can be taken; each is named once per step.
    public mutating func takeHandshakeSteps() -> [HandshakeStep] {
        guard !handshakeSteps.isEmpty else { return [] }
        var taken: [HandshakeStep] = []
        swap(&taken, &handshakeSteps)
        return taken
    }

    /// Handshakes that are not over, also those of closed connections whose step is still under way:
    /// each of them holds a socket.
    public var handshakeCount: Int { handshakes.count + abandonedHandshakes.count }

    /// Connections that speak TLS, their handshake being over.
    public var securedCount: Int { secured.count }

    /// Whether this very connection's handshake is not over; a header before it counts as its begin.
    public func isShakingHands(_ handle: Handle) -> Bool {
        slots[handle.index].generation == handle.generation && handshakes[handle.index] != nil
    }

    /// Whether this very connection's handshake waits for its client: no step is under way.
    public func awaitsClient(_ handle: Handle) -> Bool {
        isShakingHands(handle) && handshakes[handle.index]?.isUnderWay == false
    }

    /// The socket is ready: the next step is due. Until it is over, the kernel reports nothing.
    mutating func prepareStep(_ handle: Handle) {
        guard let pending = handshakes[handle.index], !pending.isUnderWay else { return }
        handshakes[handle.index]?.isUnderWay = true
        if !slots[handle.index].isOneShot { watch(handle, 0) }
        handshakeSteps.append(HandshakeStep(connection: handle, handshake: pending.handshake))
    }

    /// Takes over what a step on another thread came to.
    public mutating func finishStep(
        _ handle: Handle, _ outcome: TLSHandshake.Outcome
    ) -> HandshakeProgress {
        if let descriptor = abandonedHandshakes.removeValue(forKey: handle.packed) {
            _ = Glibc.close(descriptor)
            return .stale
        }
        guard slots[handle.index].generation == handle.generation,
            slots[handle.index].security == Self.handshaking,
            let handshake = handshakes[handle.index]?.handshake
        else { return .stale }
        handshakes[handle.index]?.isUnderWay = false
        switch outcome {
        case .wantsRead:
            watch(handle, EPOLLIN.rawValue)
            return .underWay
        case .wantsWrite:
            watch(handle, EPOLLOUT.rawValue)
            return .underWay
        case .established(let peer):
            let index = secured.insert(Secured())
            guard handshake.takeChannel(into: &secured[index].channel) else {
                preconditionFailure("an established handshake without keys")
            }
            handshake.withRest { input, output in
                bytesReceived += UInt64(input.count)
                keepRecord(index, input, from: 0)
                secured[index].isUnopened = !input.isEmpty
                secured[index].sealed.append(output, pool: pool)
            }
            handshakes[handle.index] = nil
            slots[handle.index].security = index
            updateInterest(handle)
            return .established(peer)
        case .failed(let failure): return .failed(failure)
        }
    }

    /// Forgets the handshake of a connection that is being closed; false when a step is under way, and
    /// the socket closes only after it.
    mutating func abandonHandshake(_ handle: Handle) -> Bool {
        guard let pending = handshakes.removeValue(forKey: handle.index) else { return true }
        let descriptor = slots[handle.index].descriptor
        guard pending.isUnderWay else {
            discardInput(descriptor)
            return true
        }
        _ = epoll_ctl(poller.rawValue, EPOLL_CTL_DEL, descriptor, nil)
        // A step that has not begun does nothing; one that has finds the end of the stream.
        pending.handshake.abandon()
        _ = shutdown(descriptor, CInt(SHUT_RDWR))
        abandonedHandshakes[handle.packed] = descriptor
        return false
    }

    /// Closing with unread input would reset the stream, and the peer would not see the alert that says
    /// why.
    private mutating func discardInput(_ descriptor: CInt) {
        _ = recv(descriptor, sharedInput, Self.sharedInputBytes, 0)
    }

    private mutating func watch(_ handle: Handle, _ interest: UInt32) {
        slots[handle.index].isOneShot = true
        do throws(SystemError) {
            try control(
                EPOLL_CTL_MOD, slots[handle.index].descriptor, interest | EPOLLONESHOT.rawValue,
                handle, "handshake")
        } catch {
            // As in updateInterest(_:): the CONNECT deadline ends what the kernel forgot.
        }
    }
}
