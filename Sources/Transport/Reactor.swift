import CLinux
import Glibc
import Structures
import TLS

/// Sockets of one thread over epoll, level-triggered; knows no protocol.
///
/// The owner pulls: ``wait(milliseconds:)``, then every ``event(_:)``, then ``receive(_:)``,
/// ``accept(_:)`` or ``send(_:_:)`` as each asks. An idle connection holds a 32-byte slot and no
/// buffer. A registration is named by slot and generation, so that an event of a closed connection
/// finds no owner even when the kernel has reused its descriptor within the same batch.
/// With ``secure(_:with:)`` a connection speaks TLS: the same calls then carry what is inside.
public struct Reactor: ~Copyable {
    struct Slot: BitwiseCopyable {
        var descriptor: CInt
        var generation: UInt32
        /// Input that did not make a whole packet yet, in a pool buffer; `nil` when there is none.
        var input: UnsafeMutableRawPointer?
        var inputCount: UInt32
        var inputCapacity: UInt32
        var isReading: Bool
        /// An event comes when the peer ends its direction, although nothing is read.
        var awaitsEnd = false
        var awaitsWritable: Bool
        /// The kernel reports it once, and then nothing until it is asked again.
        var isOneShot: Bool
        /// Its record among ``secured``, or one of the constants below.
        var security: UInt32
    }

    /// A plain connection.
    static var plain: UInt32 { noIndex }
    /// A TLS handshake is under way.
    static var handshaking: UInt32 { noIndex - 1 }
    /// The header of the PROXY protocol has not arrived.
    static var awaitingProxyHeader: UInt32 { noIndex - 2 }

    public enum Event {
        /// A listener has connections to accept.
        case acceptable(listener: Int)
        /// `isHungUp` says that the peer is gone in both directions, `hasEnded` that it has ended its own,
        /// which only ``stopReading(_:awaitsEnd:)`` asks for; reading finds what it left.
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
        /// Gone while it waited; the next one may be fine.
        case gone
        /// Whoever waits cannot even be refused: trying again at once would find the same.
        case unable(SystemError)
        /// None waits.
        case none
    }

    public enum Received {
        /// Everything that has not been consumed, oldest first; valid until the next ``receive(_:)``.
        case bytes(UnsafeRawBufferPointer)
        case wouldBlock
        case endOfStream
        /// The header that ``expectProxyHeader(_:)`` asked for has arrived; what is behind it may be
        /// there as well.
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

    private static var eventCapacity: Int { 512 }
    static var sharedInputBytes: Int { 64 * 1_024 }
    /// Up to here kept input moves to the shared buffer for the next read; beyond, reads append to it.
    static var movableInputBytes: Int { 8 * 1_024 }
    static var segmentCapacity: Int { 64 }
    private static var largestGeneration: UInt32 { .max >> 1 }
    /// Generation of the reactor's own descriptors; connections count from 1.
    private static var ownGeneration: UInt32 { 0 }

    let poller: OwnedDescriptor
    let pool: BytePool
    var slots = Slab<Slot>()
    private var listeners: [CInt] = []
    public private(set) var listenerAddresses: [String] = []
    private let events: UnsafeMutablePointer<epoll_event>
    private var eventCount = 0
    let sharedInput: UnsafeMutableRawPointer
    let segments: UnsafeMutablePointer<OutputQueue.Segment>
    /// Given up to accept and close a connection when no descriptor is left.
    private var spareDescriptor: CInt
    public internal(set) var bytesReceived: UInt64 = 0
    public internal(set) var bytesSent: UInt64 = 0
    /// Connections that speak TLS, once their handshake is over.
    var secured = Slab<Secured>()
    /// By slot: the peers' addresses that headers of the PROXY protocol named, ``PeerAddress/unknown``
    /// for others.
    var sources: [PeerAddress] = []
    var ciphers = RecordCiphers()
    /// One buffer for the records that are read or sent at the moment; made for the first TLS connection.
    var sharedRecords: UnsafeMutableRawPointer?
    var handshakes: [UInt32: PendingHandshake] = [:]
    var handshakeSteps: [HandshakeStep] = []
    /// Sockets whose connection was closed during a step of its handshake: they close when it ends.
    var abandonedHandshakes: [UInt64: CInt] = [:]
    /// What the buffers of unfinished packets and records take together.
    public internal(set) var heldInputBytes = 0
    /// Of connections that hold much, the number of their packet in the order of their begins.
    var inputOrder: [UInt32: UInt64] = [:]
    var inputCount: UInt64 = 0

    public init(pool: BytePool) throws(SystemError) {
        let descriptor = epoll_create1(CInt(EPOLL_CLOEXEC))
        guard descriptor >= 0 else {
            throw SystemError(call: "epoll_create1", subject: "reactor", code: errno)
        }
        poller = OwnedDescriptor(adopting: descriptor)
        self.pool = pool
        events = .allocate(capacity: Self.eventCapacity)
        sharedInput = .allocate(byteCount: Self.sharedInputBytes, alignment: 64)
        segments = .allocate(capacity: Self.segmentCapacity)
        segments.initialize(repeating: OutputQueue.Segment(), count: Self.segmentCapacity)
        spareDescriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
    }

    deinit {
        for index in 0..<slots.endIndex where slots[index].descriptor >= 0 {
            _ = Glibc.close(slots[index].descriptor)
        }
        for descriptor in abandonedHandshakes.values { _ = Glibc.close(descriptor) }
        sharedRecords?.deallocate()
        for listener in listeners { _ = Glibc.close(listener) }
        if spareDescriptor >= 0 { _ = Glibc.close(spareDescriptor) }
        events.deallocate()
        sharedInput.deallocate()
        segments.deallocate()
    }

    /// Open connections.
    public var connectionCount: Int { slots.count }

    /// Sockets of connections, also of those that were closed during a step of their handshake.
    public var socketCount: Int { slots.count + abandonedHandshakes.count }

    // MARK: Waiting

    /// Waits for events, at most `milliseconds` (-1: without end); returns how many there are.
    public mutating func wait(milliseconds: CInt) throws(SystemError) -> Int {
        let count = epoll_wait(poller.rawValue, events, CInt(Self.eventCapacity), milliseconds)
        if count < 0 {
            guard errno == EINTR else {
                throw SystemError(call: "epoll_wait", subject: "reactor", code: errno)
            }
            eventCount = 0
        } else {
            eventCount = Int(count)
        }
        return eventCount
    }

    public func event(_ index: Int) -> Event {
        precondition(index < eventCount, "event \(index) of \(eventCount)")
        let handle = Handle(packed: events[index].data.u64)
        if handle.generation == Self.ownGeneration {
            return handle.index == 0 ? .mailbox : .acceptable(listener: Int(handle.index) - 1)
        }
        guard slots[handle.index].generation == handle.generation else { return .stale }
        let flags = events[index].events
        let isHungUp = flags & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0
        let hasEnded = flags & EPOLLRDHUP.rawValue != 0
        return .connection(
            handle, isReadable: isHungUp || hasEnded || flags & EPOLLIN.rawValue != 0,
            isWritable: flags & EPOLLOUT.rawValue != 0, isHungUp: isHungUp, hasEnded: hasEnded)
    }

    public mutating func register<Message>(_ mailbox: Mailbox<Message>) throws(SystemError) {
        try control(
            EPOLL_CTL_ADD, mailbox.eventDescriptor, EPOLLIN.rawValue,
            Handle(index: 0, generation: Self.ownGeneration), "mailbox")
    }

    // MARK: Accepting

    /// Listens on a numeric address; port 0 takes a free one. Returns the listener's number.
    public mutating func listen(
        address: String, port: UInt16, userTimeout: Duration
    ) throws(SystemError) -> Int {
        let descriptor = try Listener.open(
            address: address, port: port,
            userTimeoutMilliseconds: CInt(clamping: userTimeout.components.seconds * 1_000)
        ).take()
        listeners.append(descriptor)
        let text = SocketAddress.localText(of: descriptor)
        listenerAddresses.append(text)
        try control(
            EPOLL_CTL_ADD, descriptor, EPOLLIN.rawValue,
            Handle(index: UInt32(listeners.count), generation: Self.ownGeneration), text)
        return listeners.count - 1
    }

    /// Stops or goes on accepting from a listener; who comes meanwhile waits in the kernel.
    public mutating func setAccepting(_ listener: Int, _ isAccepting: Bool) {
        guard listener < listeners.count else { return }
        do throws(SystemError) {
            try control(
                EPOLL_CTL_MOD, listeners[listener], isAccepting ? EPOLLIN.rawValue : 0,
                Handle(index: UInt32(listener + 1), generation: Self.ownGeneration), "listener")
        } catch {
            // The descriptor is registered, and changing its interest needs no memory.
        }
    }

    /// Stops accepting; established connections go on.
    public mutating func closeListeners() {
        for listener in listeners { _ = Glibc.close(listener) }
        listeners.removeAll()
    }

    /// Takes a connection off. With `isOneShot`, for one that will speak TLS at once, the kernel reports it
    /// once, so that its handshake need not ask for silence.
    public mutating func accept(_ listener: Int, isOneShot: Bool = false) -> Accepted {
        guard listener < listeners.count else { return .none }
        let (descriptor, code) = retrying { Int(hermes_accept(listeners[listener])) }
        guard descriptor >= 0 else {
            switch code {
            case EAGAIN, EWOULDBLOCK: return .none
            case EMFILE, ENFILE: return refuseOne(listener, code)
            // Also errors of the network that are the connection's alone, see accept(2).
            case ECONNABORTED, EPROTO, EPERM, ENETDOWN, ENOPROTOOPT, EHOSTDOWN, ENONET,
                EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH:
                return .gone
            default:
                return .unable(
                    SystemError(call: "accept", subject: listenerAddresses[listener], code: code))
            }
        }
        let index = slots.insert(
            Slot(
                descriptor: -1, generation: 0, input: nil, inputCount: 0, inputCapacity: 0,
                isReading: true, awaitsWritable: false, isOneShot: isOneShot,
                security: Self.plain))
        generationCounter = generationCounter == Self.largestGeneration ? 1 : generationCounter + 1
        slots[index].descriptor = CInt(descriptor)
        slots[index].generation = generationCounter
        let handle = Handle(index: index, generation: generationCounter)
        do throws(SystemError) {
            let interest = EPOLLIN.rawValue | (isOneShot ? EPOLLONESHOT.rawValue : 0)
            try control(EPOLL_CTL_ADD, CInt(descriptor), interest, handle, "connection")
        } catch {
            close(handle)
            return .unable(error)
        }
        takeSpareDescriptor()
        return .connection(handle)
    }

    private var generationCounter: UInt32 = 0

    /// Without a free descriptor the queue of the listener would stay readable for ever; the spare
    /// one is lent to take a connection off and close it, so that its client learns of it.
    private mutating func refuseOne(_ listener: Int, _ code: CInt) -> Accepted {
        takeSpareDescriptor()
        guard spareDescriptor >= 0 else {
            return .unable(
                SystemError(call: "accept", subject: listenerAddresses[listener], code: code))
        }
        _ = Glibc.close(spareDescriptor)
        spareDescriptor = -1
        let (descriptor, failure) = retrying { Int(hermes_accept(listeners[listener])) }
        if descriptor >= 0 { _ = Glibc.close(CInt(descriptor)) }
        takeSpareDescriptor()
        if descriptor >= 0 { return .refused }
        // Without a free descriptor the kernel does not look whether anybody waits.
        guard failure != EAGAIN, failure != EWOULDBLOCK else { return .none }
        return .unable(
            SystemError(call: "accept", subject: listenerAddresses[listener], code: failure))
    }

    /// Another thread may have been faster when the spare descriptor was lent: the next one that
    /// comes free takes its place.
    private mutating func takeSpareDescriptor() {
        guard spareDescriptor < 0 else { return }
        spareDescriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
    }

    // MARK: Reading

    /// One read. Small input that was kept comes first; a large packet collects in its own buffer,
    /// which grows with what has arrived and never with what was announced.
    public mutating func receive(_ handle: Handle) -> Received {
        guard slots[handle.index].generation == handle.generation else { return .wouldBlock }
        guard slots[handle.index].security == Self.plain else { return receiveSecured(handle) }
        let kept = Int(slots[handle.index].inputCount)
        let base: UnsafeMutableRawPointer
        let capacity: Int
        if let input = slots[handle.index].input, kept > Self.movableInputBytes {
            if kept == Int(slots[handle.index].inputCapacity) { growInput(handle.index) }
            base = slots[handle.index].input ?? input
            capacity = Int(slots[handle.index].inputCapacity)
        } else {
            if let input = slots[handle.index].input {
                sharedInput.copyMemory(from: input, byteCount: kept)
            }
            base = sharedInput
            capacity = Self.sharedInputBytes
        }
        let descriptor = slots[handle.index].descriptor
        let (count, code) = retrying {
            recv(descriptor, base + kept, capacity - kept, 0)
        }
        guard count > 0 else { return nothingReceived(handle, count, code) }
        bytesReceived += UInt64(count)
        return .bytes(UnsafeRawBufferPointer(start: base, count: kept + count))
    }

    /// What it means that `recv` returned 0 or failed.
    func nothingReceived(_ handle: Handle, _ count: Int, _ code: CInt) -> Received {
        if count == 0 { return .endOfStream }
        if code == EAGAIN || code == EWOULDBLOCK { return .wouldBlock }
        return .failed(SystemError(call: "recv", subject: address(of: handle), code: code))
    }

    /// Input that ``keep(_:_:from:)`` kept, without reading; empty when there is none.
    public func keptInput(_ handle: Handle) -> UnsafeRawBufferPointer {
        let slot = slots[handle.index]
        guard slot.generation == handle.generation, let input = slot.input else {
            return UnsafeRawBufferPointer(start: nil, count: 0)
        }
        return UnsafeRawBufferPointer(start: input, count: Int(slot.inputCount))
    }

    /// Keeps what was not consumed of bytes from ``receive(_:)`` or ``keptInput(_:)``.
    public mutating func keep(
        _ handle: Handle, _ bytes: UnsafeRawBufferPointer, from consumed: Int
    ) {
        guard slots[handle.index].generation == handle.generation else { return }
        let remaining = bytes.count - consumed
        guard remaining > 0, let source = bytes.baseAddress else {
            releaseInput(handle.index)
            return
        }
        if let input = slots[handle.index].input,
            remaining <= Int(slots[handle.index].inputCapacity)
        {
            // The source may be this very buffer.
            if input + 0 != source + consumed { memmove(input, source + consumed, remaining) }
            slots[handle.index].inputCount = UInt32(remaining)
            if consumed > 0 {
                noteInput(
                    handle.index, 0, capacity: Int(slots[handle.index].inputCapacity),
                    isNew: true)
            }
            return
        }
        let former = Int(slots[handle.index].inputCapacity)
        let capacity = BytePool.capacity(for: remaining)
        let buffer = pool.allocate(capacity)
        buffer.copyMemory(from: source + consumed, byteCount: remaining)
        if let input = slots[handle.index].input { pool.deallocate(input, count: former) }
        slots[handle.index].input = buffer
        slots[handle.index].inputCount = UInt32(remaining)
        slots[handle.index].inputCapacity = UInt32(capacity)
        noteInput(handle.index, capacity - former, capacity: capacity, isNew: consumed > 0)
    }

    /// Stops reading from a connection; its unread input waits in the kernel. With `awaitsEnd` an event
    /// says when the peer has ended its direction: the owner closes the connection then, since the event
    /// would come for ever.
    public mutating func stopReading(_ handle: Handle, awaitsEnd: Bool) {
        setReading(handle, false, awaitsEnd)
    }

    /// Goes on reading from a connection.
    public mutating func resumeReading(_ handle: Handle) { setReading(handle, true, false) }

    private mutating func setReading(_ handle: Handle, _ isReading: Bool, _ awaitsEnd: Bool) {
        guard slots[handle.index].generation == handle.generation,
            slots[handle.index].isReading != isReading
                || slots[handle.index].awaitsEnd != awaitsEnd
        else { return }
        slots[handle.index].isReading = isReading
        slots[handle.index].awaitsEnd = awaitsEnd
        updateInterest(handle)
    }

    // MARK: Writing

    /// Sends as much as the socket takes, and asks for an event when something is left.
    public mutating func send(_ handle: Handle, _ output: inout OutputQueue) -> Sent {
        guard slots[handle.index].generation == handle.generation else {
            output.removeAll(in: pool)
            return .all
        }
        guard slots[handle.index].security == Self.plain else {
            return sendSecured(handle, &output)
        }
        let descriptor = slots[handle.index].descriptor
        while !output.isEmpty {
            let count = output.fill(segments, capacity: Self.segmentCapacity)
            let (sent, code) = retrying {
                count == 1
                    ? hermes_send(descriptor, segments[0].base, segments[0].count)
                    : hermes_send_vector(descriptor, segments, count)
            }
            guard sent >= 0 else {
                if code == EAGAIN || code == EWOULDBLOCK || code == ENOBUFS {
                    setAwaitsWritable(handle, true)
                    return .blocked
                }
                return .failed(SystemError(call: "send", subject: address(of: handle), code: code))
            }
            bytesSent += UInt64(sent)
            output.consume(sent, pool: pool)
        }
        setAwaitsWritable(handle, false)
        return .all
    }

    /// Ends our direction: the peer reads everything and then the end of the stream.
    public mutating func finishSending(_ handle: Handle) {
        guard slots[handle.index].generation == handle.generation else { return }
        sendCloseNotify(handle)
        _ = shutdown(slots[handle.index].descriptor, CInt(SHUT_WR))
    }

    // MARK: Closing

    public mutating func close(_ handle: Handle) {
        guard slots[handle.index].generation == handle.generation else { return }
        if releaseSecurity(handle) { _ = Glibc.close(slots[handle.index].descriptor) }
        takeSpareDescriptor()
        releaseInput(handle.index)
        forgetSource(at: handle.index)
        slots[handle.index].descriptor = -1
        slots[handle.index].generation = Self.ownGeneration
        slots.remove(handle.index)
    }

    /// The peer's address and port, also after a reset: what a proxy's header named, else a system call.
    public func peerAddress(of handle: Handle) -> PeerAddress {
        guard slots[handle.index].generation == handle.generation else { return .unknown }
        return source(at: handle.index)
            ?? PeerAddress(peerOf: slots[handle.index].descriptor)
    }

    /// The peer's address and port as text.
    public func address(of handle: Handle) -> String { peerAddress(of: handle).text }

    // MARK: Private

    mutating func setAwaitsWritable(_ handle: Handle, _ awaits: Bool) {
        guard slots[handle.index].awaitsWritable != awaits else { return }
        slots[handle.index].awaitsWritable = awaits
        updateInterest(handle)
    }

    mutating func updateInterest(_ handle: Handle) {
        guard slots[handle.index].security != Self.handshaking else { return }
        slots[handle.index].isOneShot = false
        let slot = slots[handle.index]
        let interest =
            (slot.isReading ? EPOLLIN.rawValue : 0) | (slot.awaitsWritable ? EPOLLOUT.rawValue : 0)
            | (slot.awaitsEnd ? EPOLLRDHUP.rawValue : 0)
        do throws(SystemError) {
            try control(EPOLL_CTL_MOD, slot.descriptor, interest, handle, "connection")
        } catch {
            // The descriptor is registered; only a lack of kernel memory remains, and reading finds
            // the connection's end in its keep alive.
        }
    }

    func control(
        _ operation: CInt, _ descriptor: CInt, _ interest: UInt32, _ handle: Handle,
        _ subject: String
    ) throws(SystemError) {
        var event = epoll_event()
        event.events = interest
        event.data.u64 = handle.packed
        guard epoll_ctl(poller.rawValue, operation, descriptor, &event) == 0 else {
            throw SystemError(call: "epoll_ctl", subject: subject, code: errno)
        }
    }

    private mutating func growInput(_ index: UInt32) {
        growInput(index, to: Int(slots[index].inputCount) * 2)
    }

    mutating func growInput(_ index: UInt32, to size: Int) {
        guard let old = slots[index].input else { return }
        let count = Int(slots[index].inputCount)
        let capacity = BytePool.capacity(for: size)
        let larger = pool.allocate(capacity)
        larger.copyMemory(from: old, byteCount: count)
        let former = Int(slots[index].inputCapacity)
        pool.deallocate(old, count: former)
        slots[index].input = larger
        slots[index].inputCapacity = UInt32(capacity)
        noteInput(index, capacity - former, capacity: capacity, isNew: false)
    }

    mutating func releaseInput(_ index: UInt32) {
        guard let input = slots[index].input else { return }
        let former = Int(slots[index].inputCapacity)
        pool.deallocate(input, count: former)
        noteInput(index, -former, capacity: 0, isNew: false)
        slots[index].input = nil
        slots[index].inputCount = 0
        slots[index].inputCapacity = 0
    }
}
