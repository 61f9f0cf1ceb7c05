import CLinux
import Glibc
import Structures
import TLS

/// Sockets of one thread over epoll, level-triggered; knows no protocol of the application.
///
/// The owner pulls: ``wait(milliseconds:)``, then every ``event(_:)``, then ``receive(_:)``,
/// ``accept(_:isOneShot:)`` or ``send(_:_:)`` as each asks. A connection's bytes pass the stages that
/// ``begin(_:proxyHeader:tls:)`` chose, and the same calls carry them in each: ``Stage`` shows the way.
/// An idle plain connection holds one ``StagedSocket`` of 32 bytes and no buffer.
public struct Reactor: ~Copyable {
    /// Never read. It makes the type address-only: methods that do not mutate get its address, where the
    /// compiler would copy the whole struct before each call that it does not inline.
    private let addressOnly: any Sendable = ()
    private static var largestGeneration: UInt32 { .max >> 1 }

    private var poller: Poller
    private var listeners = Listeners()
    private var connections = Slab<StagedSocket>()
    private var lastGeneration: UInt32 = 0
    private var handshakes = Handshakes()
    private var records = Slab<RecordStage>()
    private var proxiedAddresses = ProxiedAddresses()
    private var bench: Workbench

    public init(pool: BytePool) throws(SystemError) {
        poller = try Poller()
        bench = Workbench(pool: pool)
    }

    deinit {
        for index in 0..<connections.endIndex where connections[index].isUsed {
            _ = Glibc.close(connections[index].descriptor)
        }
    }

    /// The addresses of all listeners, with the ports in use.
    public var listenerAddresses: [String] { listeners.addresses }
    /// Open connections.
    public var connectionCount: Int { connections.count }
    /// Sockets of connections, also of those that were closed during a step of their handshake.
    public var socketCount: Int { connections.count + handshakes.abandonedCount }
    /// Handshakes that have not ended, also those of closed connections whose step is still under way:
    /// each of them holds a socket.
    public var handshakeCount: Int { handshakes.count }
    /// Connections whose TLS handshake has succeeded.
    public var securedCount: Int { records.count }
    public var bytesReceived: UInt64 { bench.bytesReceived }
    public var bytesSent: UInt64 { bench.bytesSent }
    /// Memory of all buffers that hold unfinished packets and TLS records.
    public var heldInputBytes: Int { bench.held.bytes }

    // MARK: Waiting

    /// Waits for events, at most `milliseconds` (-1: without end); returns how many there are.
    public mutating func wait(milliseconds: CInt) throws(SystemError) -> Int {
        try poller.wait(milliseconds: milliseconds)
    }

    /// An event of the last wait.
    public func event(_ index: Int) -> Event {
        let event = poller.event(index)
        if case .connection(let handle, _, _, _, _) = event, !isOpen(handle) { return .stale }
        return event
    }

    /// Reports ``Event/mailbox`` when the mailbox has messages.
    public mutating func register<Message>(_ mailbox: Mailbox<Message>) throws(SystemError) {
        try poller.add(
            mailbox.eventDescriptor, EPOLLIN.rawValue, owner: Poller.mailbox, "mailbox")
    }

    // MARK: Accepting

    /// Listens on a numeric address; port 0 takes a free one. Returns the listener's number.
    public mutating func listen(
        address: String, port: UInt16, userTimeout: Duration
    ) throws(SystemError) -> Int {
        try listeners.add(
            Listener.open(
                address: address, port: port,
                userTimeoutMilliseconds: CInt(clamping: userTimeout.components.seconds * 1_000)),
            poller)
    }

    /// Stops or goes on accepting from a listener; clients that connect meanwhile wait in the kernel.
    public mutating func setAccepting(_ listener: Int, _ isAccepting: Bool) {
        listeners.setAccepting(listener, isAccepting, poller)
    }

    /// Stops accepting; established connections go on.
    public mutating func closeListeners() { listeners.closeAll() }

    /// Accepts one connection, plain until ``begin(_:proxyHeader:tls:)`` says otherwise. With
    /// `isOneShot`, for one that will begin with TLS, the kernel reports it once, so that its handshake
    /// need not ask for silence.
    public mutating func accept(_ listener: Int, isOneShot: Bool = false) -> Accepted {
        let descriptor: CInt
        switch listeners.accept(listener) {
        case .socket(let socket): descriptor = socket
        case .nothing(let accepted): return accepted
        }
        lastGeneration = lastGeneration == Self.largestGeneration ? 1 : lastGeneration + 1
        let connection = StagedSocket(descriptor, generation: lastGeneration, isOneShot: isOneShot)
        let handle = Handle(index: connections.insert(.unused), generation: lastGeneration)
        connections[handle.index] = connection
        do throws(SystemError) {
            try poller.add(descriptor, connection.interest.events, owner: handle, "connection")
        } catch {
            close(handle)
            return .unable(error)
        }
        listeners.takeSpareDescriptor()
        return .connection(handle)
    }

    /// Chooses the stages of a new connection, of which nothing has been read or sent: the header of a
    /// proxy, whose arrival ``receive(_:)`` reports, and TLS with `context`.
    public mutating func begin(
        _ handle: Handle, proxyHeader: Bool = false, tls context: TLSContext? = nil
    ) {
        guard isOpen(handle) else { return }
        connections[handle.index].begin(proxyHeader: proxyHeader, isSecured: context != nil)
        if let context {
            handshakes.begin(handle.index, context, connections[handle.index].descriptor)
        }
    }

    // MARK: Reading

    /// Reads once; the bytes that ``keep(_:_:from:)`` kept come first.
    public mutating func receive(_ handle: Handle) -> Received {
        guard isOpen(handle) else { return .wouldBlock }
        let index = handle.index
        let former = connections[index].interest
        let input = connections[index].receive(index, &records, &bench)
        updateInterest(handle, former)
        switch input {
        case .bytes(let bytes): return .bytes(bytes)
        case .wouldBlock: return .wouldBlock
        case .endOfStream: return .endOfStream
        case .proxyHeader(let header):
            if let source = header.source { proxiedAddresses.set(source, at: index) }
            return .proxyHeader
        case .malformedProxyHeader(let error): return .malformedProxyHeader(error)
        case .stepIsDue:
            requestStep(handle)
            return .wouldBlock
        case .brokenRecord: return .failed(failure("TLS record", EBADMSG, handle))
        case .failed(let code): return .failed(failure("recv", code, handle))
        }
    }

    private func failure(_ call: String, _ code: CInt, _ handle: Handle) -> SystemError {
        SystemError(call: call, subject: address(of: handle), code: code)
    }

    /// Whether input that came with the handshake waits for ``receive(_:)``, of which the kernel knows
    /// nothing.
    public func holdsUnopenedInput(_ handle: Handle) -> Bool {
        recordPlace(handle).map { records[$0].isUnopened } ?? false
    }

    /// The alert that answers the peer's records, once ``receive(_:)`` has failed because of one:
    /// `closeNotify` when the peer itself sent an alert; `nil` when no record is to blame.
    public func brokenRecordAlert(of handle: Handle) -> SecureChannel.Alert? {
        recordPlace(handle).flatMap { records[$0].brokenRecordAlert }
    }

    /// Input that ``keep(_:_:from:)`` kept, without reading; empty when there is none.
    public func keptInput(_ handle: Handle) -> UnsafeRawBufferPointer {
        isOpen(handle)
            ? connections[handle.index].input.bytes : UnsafeRawBufferPointer(start: nil, count: 0)
    }

    /// Keeps the bytes behind the first `consumed` of those that ``receive(_:)`` or ``keptInput(_:)``
    /// gave.
    public mutating func keep(
        _ handle: Handle, _ bytes: UnsafeRawBufferPointer, from consumed: Int
    ) {
        guard isOpen(handle) else { return }
        connections[handle.index].keep(bytes, from: consumed, handle.index, &bench)
    }

    /// Drops the kept input of a connection that has been answered and only has to close. The begin of a
    /// TLS record stays, so that the bytes behind it are not taken for another record.
    public mutating func discardKeptInput(_ handle: Handle) {
        guard isOpen(handle) else { return }
        connections[handle.index].releaseInput(handle.index, &bench)
    }

    /// All connections whose buffers hold input: large ones in the order in which their packets began,
    /// small ones behind them. Looks at every connection.
    public func unfinishedInputs() -> [UnfinishedInput] {
        var inputs: [UnfinishedInput] = []
        for index in 0..<connections.endIndex where connections[index].isUsed {
            let handle = Handle(index: index, generation: connections[index].generation)
            let bytes = connections[index].heldBytes(records)
            guard bytes > 0 else { continue }
            let order = bench.held.order(of: index)
            inputs.append(UnfinishedInput(connection: handle, bytes: bytes, order: order))
        }
        inputs.sort { ($0.order, $1.bytes) < ($1.order, $0.bytes) }
        return inputs
    }

    /// Stops reading from a connection; its unread input waits in the kernel. With `awaitsEnd` an event
    /// says when the peer has ended its direction: the owner closes the connection then, since the event
    /// would come for ever.
    public mutating func stopReading(_ handle: Handle, awaitsEnd: Bool) {
        setReading(handle, awaitsEnd ? .offUntilEnd : .off)
    }

    /// Goes on reading from a connection.
    public mutating func resumeReading(_ handle: Handle) { setReading(handle, .on) }

    private mutating func setReading(_ handle: Handle, _ reading: Interest.Reading) {
        guard isOpen(handle) else { return }
        let former = connections[handle.index].interest
        connections[handle.index].setReading(reading)
        updateInterest(handle, former)
    }

    /// Tells the kernel when the interest in a connection has changed; during a handshake its steps do.
    private func updateInterest(_ handle: Handle, _ former: Interest) {
        let connection = connections[handle.index]
        guard connection.interest != former else { return }
        if case .handshake = connection.stage { return }
        poller.change(connection.descriptor, connection.interest.events, owner: handle)
    }

    // MARK: Handshakes

    /// Handshakes whose next step can be taken; each is named once per step.
    public mutating func takeHandshakeSteps() -> [HandshakeStep] { handshakes.takeSteps() }

    /// Whether this very connection's handshake has not ended; a header before it counts as its begin.
    public func isShakingHands(_ handle: Handle) -> Bool {
        isOpen(handle) && connections[handle.index].isShakingHands
    }

    /// Whether this very connection's handshake waits for its client: no step is under way.
    public func awaitsClient(_ handle: Handle) -> Bool {
        isOpen(handle) && connections[handle.index].awaitsClient
    }

    /// The socket is ready: the next step is due. Until it has ended, the kernel reports nothing.
    private mutating func requestStep(_ handle: Handle) {
        if !connections[handle.index].interest.isOneShot { watchOnce(handle, 0) }
        handshakes.request(handle)
    }

    /// Takes over the outcome of a step on another thread.
    public mutating func finishStep(
        _ handle: Handle, _ outcome: TLSHandshake.Outcome
    ) -> HandshakeProgress {
        guard !handshakes.endAbandoned(handle), isOpen(handle),
            connections[handle.index].endStep()
        else { return .stale }
        switch outcome {
        case .wantsRead:
            watchOnce(handle, EPOLLIN.rawValue)
            return .underWay
        case .wantsWrite:
            watchOnce(handle, EPOLLOUT.rawValue)
            return .underWay
        case .established(let peer):
            let place = records.insert(RecordStage())
            records[place].begin(handshakes.remove(handle.index), &bench)
            let former = connections[handle.index].interest
            connections[handle.index].establish(RecordStage.Index(number: place))
            updateInterest(handle, former)
            return .established(peer)
        case .failed(let failure): return .failed(failure)
        }
    }

    private func watchOnce(_ handle: Handle, _ events: UInt32) {
        poller.change(
            connections[handle.index].descriptor, events | EPOLLONESHOT.rawValue, owner: handle)
    }

    // MARK: Writing

    /// Sends as much as the socket takes, and asks for an event when something is left.
    public mutating func send(_ handle: Handle, _ output: inout OutputQueue) -> Sent {
        guard isOpen(handle) else {
            output.removeAll(in: bench.pool)
            return .all
        }
        let former = connections[handle.index].interest
        let outcome = connections[handle.index].send(&output, &records, &bench)
        updateInterest(handle, former)
        switch outcome {
        case .all: return .all
        case .blocked: return .blocked
        case .stepIsDue:
            requestStep(handle)
            return .blocked
        case .failed(let code): return .failed(failure("send", code, handle))
        }
    }

    /// Ends the broker's direction: the peer reads everything and then the end of the stream.
    public mutating func finishSending(_ handle: Handle) {
        guard isOpen(handle) else { return }
        connections[handle.index].finishSending(&records, &bench)
    }

    // MARK: Closing

    /// Closes a connection and releases everything that it held. A socket whose handshake has a step under
    /// way closes when that ends.
    public mutating func close(_ handle: Handle) {
        guard isOpen(handle) else { return }
        let index = handle.index
        let descriptor = connections[index].descriptor
        switch connections[index].end(index, &records, &bench) {
        case .now: _ = Glibc.close(descriptor)
        case .duringHandshake:
            _ = handshakes.remove(index)
            bench.discardInput(descriptor)
            _ = Glibc.close(descriptor)
        case .afterStep:
            poller.remove(descriptor)
            handshakes.abandon(handle, descriptor)
        }
        listeners.takeSpareDescriptor()
        proxiedAddresses.remove(index)
        connections[index] = .unused
        connections.remove(index)
    }

    /// The peer's address and port, also after a reset: from a proxy's header, else by a system call.
    public func peerAddress(of handle: Handle) -> PeerAddress {
        guard isOpen(handle) else { return .unknown }
        return proxiedAddresses[handle.index]
            ?? PeerAddress(peerOf: connections[handle.index].descriptor)
    }

    /// The peer's address and port as text.
    public func address(of handle: Handle) -> String { peerAddress(of: handle).text }

    private func isOpen(_ handle: Handle) -> Bool {
        connections[handle.index].generation == handle.generation
    }

    private func recordPlace(_ handle: Handle) -> UInt32? {
        isOpen(handle) ? connections[handle.index].recordPlace : nil
    }
}
