import Addresses
import Glibc
import Structures
import SystemFiles
import TLS

/// The sockets of one thread, on epoll (level-triggered), for any protocol.
///
/// The owner calls ``wait(milliseconds:)``, then ``event(_:)`` for each event, then
/// ``receive(_:)``, ``accept(_:isOneShot:)`` or ``send(_:_:)`` as the event requires. Bytes pass
/// the stages chosen by ``begin(_:proxyHeader:tls:webSocket:)``; the calls are the same in each. See
/// ``Stage``. An idle plain connection takes one ``StagedSocket`` of 32 bytes and no buffer.
public struct Reactor: ~Copyable {
    /// Never read. It makes the type address-only, so that methods that do not mutate get its
    /// address; otherwise the compiler copies the struct before each call that it does not inline.
    private let addressOnly: any Sendable = ()
    private static var largestGeneration: UInt32 { .max >> 1 }
    /// Pause of the thread after a turn in which the kernel lacked memory.
    private static var shortageMicroseconds: UInt32 { 1_000 }

    private var poller: Poller
    private var listeners = Listeners()
    private var connections = Slab<StagedSocket>()
    private var ended = EndedSockets()
    private var lastGeneration: UInt32 = 0
    private var handshakes = Handshakes()
    private var tables = StageTables()
    private var proxiedAddresses = ProxiedAddresses()
    private var bench: Workbench
    private var knownShortages: UInt64 = 0

    public init(pool: BytePool) throws(SystemError) {
        poller = try Poller()
        bench = Workbench(pool: pool)
    }

    deinit {
        for index in 0..<connections.endIndex where connections[index].isUsed {
            _ = Glibc.close(connections[index].descriptor)
        }
    }

    /// The addresses of all listeners, with their actual ports.
    public var listenerAddresses: [String] { listeners.addresses }
    /// Open connections.
    public var connectionCount: Int { connections.count }
    /// Sockets of connections, including those closed during a handshake step.
    public var socketCount: Int { connections.count + handshakes.abandonedCount }
    /// Unfinished handshakes, also of closed connections with a running step; each holds a socket.
    public var handshakeCount: Int { handshakes.count }
    /// Connections whose TLS handshake has succeeded.
    public var securedCount: Int { tables.records.count }
    public var bytesReceived: UInt64 { bench.bytesReceived }
    public var bytesSent: UInt64 { bench.bytesSent }
    /// TLS records that have been opened.
    public var recordsOpened: UInt64 { bench.recordsOpened }
    /// Memory of all buffers with packets and TLS records whose rest the peers owe.
    public var unfinishedBytes: Int { bench.held.unfinished }
    /// Memory of all buffers with input that the owner holds back.
    public var heldBackBytes: Int { bench.held.heldBack }
    /// From this much input held back on, ``receive(_:)`` takes as little as with ``readsLittle``, so
    /// that what each further connection adds is small.
    public var heldBackBound: Int {
        get { bench.heldBackBound }
        set { bench.heldBackBound = newValue }
    }
    /// Calls that failed because the kernel lacked memory for sockets; they are made again.
    public var kernelShortages: UInt64 { bench.shortages &+ poller.shortages }

    // MARK: Waiting

    /// Waits for events, at most `milliseconds` (-1: without limit); returns their number.
    public mutating func wait(milliseconds: CInt) throws(SystemError) -> Int {
        if kernelShortages != knownShortages {
            knownShortages = kernelShortages
            // What failed is reported as ready at once; the kernel gets a moment to find memory.
            _ = usleep(Self.shortageMicroseconds)
        }
        return try poller.wait(milliseconds: milliseconds)
    }

    /// An event of the last wait.
    public func event(_ index: Int) -> Event { current(poller.event(index)) }

    /// Asks for events of newcomers, without waiting; returns their number, of which there may be more
    /// while ``mayNewcomersWait``.
    public mutating func askNewcomers() -> Int { poller.askNewcomers() }

    /// True when newcomers may have more events than ``askNewcomers()`` brought.
    public var mayNewcomersWait: Bool { poller.mayNewcomersWait }

    /// An event of the newcomers.
    public func newcomerEvent(_ index: Int) -> Event { current(poller.newcomerEvent(index)) }

    private func current(_ event: Event) -> Event {
        if case .connection(let handle, _, _, _, _) = event, !isOpen(handle) { return .stale }
        return event
    }

    /// Reports ``Event/mailbox`` when the mailbox has messages.
    public mutating func register<Message>(_ mailbox: Mailbox<Message>) throws(SystemError) {
        try poller.add(
            mailbox.eventDescriptor, .input, owner: Poller.mailbox, "mailbox")
    }

    // MARK: Accepting

    /// Listens on a numeric address; port 0 chooses a free one. Returns the listener's number.
    /// `isIPv6Only` leaves the IPv4 clients of `::` to another listener.
    public mutating func listen(
        address: String, port: UInt16, isIPv6Only: Bool = false, userTimeout: Duration
    ) throws(SystemError) -> Int {
        try listeners.add(
            Listener.open(
                address: address, port: port, isIPv6Only: isIPv6Only,
                userTimeoutMilliseconds: CInt(clamping: userTimeout.components.seconds * 1_000)),
            poller)
    }

    /// Sets whether a listener accepts; otherwise new clients wait in the kernel.
    public mutating func setAccepting(_ listener: Int, _ isAccepting: Bool) {
        listeners.setAccepting(listener, isAccepting, &poller)
    }

    /// Has the kernel refuse new clients, and reset those that wait to be accepted, until
    /// ``listenAgain()``. Established connections continue.
    public mutating func refuseConnections() { listeners.refuse(&poller) }

    /// Listens again after ``refuseConnections()``, on the same addresses and ports.
    ///
    /// - Throws: ``SystemError`` when an address is another's by now; then all refuse as before.
    public mutating func listenAgain() throws(SystemError) { try listeners.listenAgain(&poller) }

    /// Closes the listeners; established connections continue.
    public mutating func closeListeners() { listeners.closeAll() }

    /// Accepts one connection, plain until ``begin(_:proxyHeader:tls:webSocket:)``. With `isOneShot`, for one
    /// that begins with TLS, its socket is reported once, as the handshake needs. The events of a
    /// newcomer are asked for by ``askNewcomers()``, until ``adopt(_:)``.
    public mutating func accept(
        _ listener: Int, isOneShot: Bool = false, isNewcomer: Bool = false
    ) -> Accepted {
        let descriptor: CInt
        switch listeners.accept(listener, &ended) {
        case .socket(let socket): descriptor = socket
        case .nothing(let accepted): return accepted
        }
        lastGeneration = lastGeneration == Self.largestGeneration ? 1 : lastGeneration + 1
        var interest = Interest.input
        if isOneShot { interest.insert(.once) }
        if isNewcomer { interest.insert(.newcomer) }
        let connection = StagedSocket(descriptor, generation: lastGeneration, interest: interest)
        let handle = Handle(index: connections.insert(.unused), generation: lastGeneration)
        connections[handle.index] = connection
        do throws(SystemError) {
            try poller.add(descriptor, interest, owner: handle, "connection")
        } catch {
            close(handle)
            return .unable(error)
        }
        listeners.takeSpareDescriptor()
        return .connection(handle)
    }

    /// Reports the events of a newcomer with those of all others from now on; not during a handshake.
    public mutating func adopt(_ handle: Handle) {
        guard isOpen(handle), connections[handle.index].interest.contains(.newcomer) else { return }
        let connection = connections[handle.index]
        if poller.adopt(connection.descriptor, connection.interest, owner: handle) {
            connections[handle.index].endNewcomer()
        }
    }

    /// Chooses the stages of a new connection before any read: a PROXY header, whose arrival
    /// ``receive(_:)`` reports, TLS with `context`, and WebSocket as ``setWebSocket(_:ofListener:)`` has
    /// it for a listener.
    public mutating func begin(
        _ handle: Handle, proxyHeader: Bool = false, tls context: TLSContext? = nil,
        webSocket listener: Int? = nil
    ) {
        guard isOpen(handle) else { return }
        connections[handle.index].begin(
            proxyHeader: proxyHeader, isSecured: context != nil,
            webSocket: listener.map { UInt8(truncatingIfNeeded: $0) }, &tables)
        if let context {
            handshakes.begin(handle.index, context, connections[handle.index].descriptor)
        }
    }

    // MARK: Reading

    /// True while ``receive(_:)`` takes at most 4 KiB from a socket.
    public var readsLittle: Bool {
        get { bench.readsLittle }
        set { bench.readsLittle = newValue }
    }

    /// Reads once; bytes kept by ``keep(_:_:from:)`` come first.
    public mutating func receive(_ handle: Handle) -> Received {
        guard isOpen(handle) else { return .wouldBlock }
        let index = handle.index
        let former = connections[index].interest
        let wasHeldBack = connections[index].isHeldBack
        connections[index].setHeldBack(false, tables, &bench)
        let input = connections[index].receive(index, &tables, &bench)
        connections[index].setHeldBack(wasHeldBack, tables, &bench)
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
        case .brokenWebSocket(let flaw): return .brokenWebSocket(flaw)
        case .brokenRecord: return .failed(failure("TLS record", EBADMSG, handle))
        case .failed(let code): return .failed(failure("recv", code, handle))
        }
    }

    private func failure(_ call: String, _ code: CInt, _ handle: Handle) -> SystemError {
        SystemError(call: call, subject: address(of: handle), code: code)
    }

    /// True when input that came with the handshake waits for ``receive(_:)`` without an event.
    public func holdsUnopenedInput(_ handle: Handle) -> Bool {
        recordPlace(handle).map { tables.records[$0].isUnopened } ?? false
    }

    /// The alert to send after ``receive(_:)`` failed on a TLS record; `closeNotify` if the peer
    /// itself sent an alert; `nil` if no record caused the failure.
    public func brokenRecordAlert(of handle: Handle) -> SecureChannel.Alert? {
        recordPlace(handle).flatMap { tables.records[$0].brokenRecordAlert }
    }

    /// Input kept by ``keep(_:_:from:)``, without reading; empty when there is none.
    public func keptInput(_ handle: Handle) -> UnsafeRawBufferPointer {
        isOpen(handle)
            ? connections[handle.index].input.bytes : UnsafeRawBufferPointer(start: nil, count: 0)
    }

    /// Keeps the input from ``receive(_:)`` or ``keptInput(_:)`` after the first `consumed` bytes.
    /// `isHeldBack`: the owner would not take the rest of its packet either.
    public mutating func keep(
        _ handle: Handle, _ bytes: UnsafeRawBufferPointer, from consumed: Int,
        isHeldBack: Bool = false
    ) {
        guard isOpen(handle) else { return }
        connections[handle.index].setHeldBack(false, tables, &bench)
        connections[handle.index].keep(bytes, from: consumed, handle.index, &bench)
        connections[handle.index].setHeldBack(isHeldBack, tables, &bench)
    }

    /// Drops the kept input and the token of a connection that is about to close. An incomplete TLS
    /// record stays, so that the bytes after it are not mistaken for a record.
    public mutating func discardKeptInput(_ handle: Handle) {
        guard isOpen(handle) else { return }
        connections[handle.index].setHeldBack(false, tables, &bench)
        connections[handle.index].releaseInput(handle.index, &bench)
        releaseToken(handle)
    }

    /// All connections with unfinished input, large buffers first in the order in which their packets
    /// began. Visits every connection.
    public func unfinishedInputs() -> [UnfinishedInput] {
        var inputs: [UnfinishedInput] = []
        for index in 0..<connections.endIndex
        where connections[index].isUsed && !connections[index].isHeldBack {
            let handle = Handle(index: index, generation: connections[index].generation)
            let bytes = connections[index].heldBytes(tables)
            guard bytes > 0 else { continue }
            let order = bench.held.order(of: index)
            inputs.append(UnfinishedInput(connection: handle, bytes: bytes, order: order))
        }
        inputs.sort { ($0.order, $1.bytes) < ($1.order, $0.bytes) }
        return inputs
    }

    /// Stops reading; unread input stays in the kernel. With `awaitsEnd` an event reports the end
    /// of the peer's direction. The owner then closes the connection, as the event would repeat.
    public mutating func stopReading(_ handle: Handle, awaitsEnd: Bool) {
        setReading(handle, awaitsEnd ? .end : [], isHeldBack: true)
    }

    /// Reads from a connection again.
    public mutating func resumeReading(_ handle: Handle) {
        setReading(handle, .input, isHeldBack: false)
    }

    /// Reports no event of a failed socket, whose end the kernel would report in every turn, until
    /// ``resumeReading(_:)``. False when it is silent already.
    public mutating func silence(_ handle: Handle) -> Bool {
        guard isOpen(handle), !connections[handle.index].interest.contains(.once) else {
            return false
        }
        setReading(handle, .once, isHeldBack: true)
        return true
    }

    private mutating func setReading(_ handle: Handle, _ reading: Interest, isHeldBack: Bool) {
        guard isOpen(handle) else { return }
        connections[handle.index].setHeldBack(isHeldBack, tables, &bench)
        let former = connections[handle.index].interest
        connections[handle.index].setReading(reading)
        updateInterest(handle, former)
    }

    /// Updates epoll if the interest has changed; during a handshake its steps do this.
    @inline(__always)
    private mutating func updateInterest(_ handle: Handle, _ former: Interest) {
        if connections[handle.index].interest != former { tellInterest(handle) }
    }

    /// During a handshake its steps tell the kernel.
    private mutating func tellInterest(_ handle: Handle) {
        let connection = connections[handle.index]
        if case .handshake = connection.stage { return }
        poller.change(connection.descriptor, connection.interest, owner: handle)
    }

    // MARK: Handshakes

    /// Handshakes whose next step is due; each is returned once per step.
    public mutating func takeHandshakeSteps() -> [HandshakeStep] { handshakes.takeSteps() }

    /// True until this connection's handshake has ended, including its PROXY header.
    public func isShakingHands(_ handle: Handle) -> Bool {
        isOpen(handle) && connections[handle.index].isShakingHands
    }

    /// True when this connection's handshake waits for its client; no step is running.
    public func awaitsClient(_ handle: Handle) -> Bool {
        isOpen(handle) && connections[handle.index].awaitsClient
    }

    /// Requests the next handshake step for a ready socket. Events stop until the step ends.
    private mutating func requestStep(_ handle: Handle) {
        if !connections[handle.index].interest.contains(.once) { watchOnce(handle, []) }
        handshakes.request(handle)
    }

    /// Takes the result of a step from another thread.
    public mutating func finishStep(
        _ handle: Handle, _ outcome: TLSHandshake.Outcome
    ) -> HandshakeProgress {
        guard !handshakes.endAbandoned(handle), isOpen(handle),
            connections[handle.index].endStep()
        else { return .stale }
        switch outcome {
        case .wantsRead:
            watchOnce(handle, .input)
            return .underWay
        case .wantsWrite:
            watchOnce(handle, .room)
            return .underWay
        case .established(let peer):
            let place = tables.records.insert(RecordStage())
            tables.records[place].begin(handshakes.remove(handle.index), &bench)
            let former = connections[handle.index].interest
            connections[handle.index].establish(RecordStage.Index(number: place), &tables)
            updateInterest(handle, former)
            return .established(peer)
        case .failed(let failure): return .failed(failure)
        }
    }

    private mutating func watchOnce(_ handle: Handle, _ events: Interest) {
        let connection = connections[handle.index]
        poller.change(
            connection.descriptor,
            events.union(.once).union(connection.interest.intersection(.newcomer)), owner: handle)
    }

    // MARK: Writing

    /// Sends as much as the socket takes, about `most` bytes at most; an event reports when a socket
    /// that was full takes more.
    public mutating func send(
        _ handle: Handle, _ output: inout OutputQueue, atMost most: Int = .max
    ) -> Sent {
        guard isOpen(handle) else {
            output.removeAll(in: bench.pool)
            return .all
        }
        let former = connections[handle.index].interest
        let outcome = connections[handle.index].send(&output, atMost: most, &tables, &bench)
        updateInterest(handle, former)
        switch outcome {
        case .all: return output.isEmpty ? .all : .part
        case .blocked: return .blocked
        case .stepIsDue:
            requestStep(handle)
            return .blocked
        case .failed(let code): return .failed(failure("send", code, handle))
        }
    }

    /// Has an event report that the socket has room for what ``send(_:_:atMost:)`` left.
    public mutating func awaitRoom(_ handle: Handle) {
        guard isOpen(handle) else { return }
        let former = connections[handle.index].interest
        connections[handle.index].awaitRoom()
        updateInterest(handle, former)
    }

    /// Ends the broker's direction after all output.
    public mutating func finishSending(_ handle: Handle) {
        guard isOpen(handle) else { return }
        connections[handle.index].finishSending(&tables, &bench)
    }

    // MARK: WebSocket

    /// What a listener asks of WebSocket, before its connections ``begin(_:proxyHeader:tls:webSocket:)``.
    public mutating func setWebSocket(_ rules: WebSocketRules, ofListener listener: Int) {
        tables.setRules(rules, ofListener: listener)
    }

    /// The longest payload of one frame of WebSocket.
    public var mostFramePayload: Int {
        get { bench.mostFramePayload }
        set { bench.mostFramePayload = newValue }
    }

    /// Open connections of WebSocket, including those whose request has not come.
    public var webSocketCount: Int { tables.webSockets.count }

    /// True while a request's token waits for ``releaseToken(_:)``.
    public var holdsTokens: Bool { bench.held.tokenCount > 0 }

    /// The token that a connection's request for WebSocket has brought, until ``releaseToken(_:)``;
    /// empty when there is none.
    public func token(of handle: Handle) -> UnsafeRawBufferPointer {
        guard isOpen(handle), let place = connections[handle.index].webSocketPlace else {
            return UnsafeRawBufferPointer(start: nil, count: 0)
        }
        return tables.webSockets[place].token
    }

    /// Frees a token that its owner needs no more.
    public mutating func releaseToken(_ handle: Handle) {
        guard isOpen(handle), let place = connections[handle.index].webSocketPlace else { return }
        let wasHeldBack = connections[handle.index].isHeldBack
        connections[handle.index].setHeldBack(false, tables, &bench)
        tables.webSockets[place].releaseToken(&bench)
        connections[handle.index].setHeldBack(wasHeldBack, tables, &bench)
    }

    /// Sets the status code of the close frame that ends a connection of WebSocket. True when the peer
    /// has to be told of the end, and may still send: the owner gives it time to read.
    public mutating func setCloseCode(_ handle: Handle, _ code: WebSocketCloseCode) -> Bool {
        guard isOpen(handle), let place = connections[handle.index].webSocketPlace else {
            return false
        }
        tables.webSockets[place].setCloseCode(code)
        return tables.webSockets[place].owesAnswer
    }

    // MARK: Closing

    /// Closes a connection and frees its memory. Its socket ends by ``closeEndedSocket()``, or after
    /// a running handshake step.
    public mutating func close(_ handle: Handle) {
        guard isOpen(handle) else { return }
        let index = handle.index
        let descriptor = connections[index].descriptor
        let interest = connections[index].interest
        poller.forget(handle)
        switch connections[index].end(index, &tables, &bench) {
        case .now:
            poller.remove(descriptor, interest)
            ended.append(descriptor)
        case .duringHandshake:
            _ = handshakes.remove(index)
            bench.discardInput(descriptor)
            _ = Glibc.close(descriptor)
        case .afterStep:
            poller.remove(descriptor, interest)
            handshakes.abandon(handle, descriptor)
        }
        listeners.takeSpareDescriptor()
        proxiedAddresses.remove(index)
        connections[index] = .unused
        connections.remove(index)
    }

    /// Sockets of closed connections that are open.
    public var endedSocketCount: Int { ended.count }

    /// Closes one of them, which takes the kernel 10 us and more.
    public mutating func closeEndedSocket() {
        ended.closeFirst()
        listeners.takeSpareDescriptor()
    }

    /// The peer's address and port: from the PROXY header, else from the kernel, even after a
    /// reset.
    public func peerAddress(of handle: Handle) -> IPAddress {
        guard isOpen(handle) else { return .unknown }
        return proxiedAddresses[handle.index]
            ?? IPAddress(peerOf: connections[handle.index].descriptor)
    }

    /// The peer's address and port as text.
    public func address(of handle: Handle) -> String { peerAddress(of: handle).text }

    private func isOpen(_ handle: Handle) -> Bool {
        connections[handle.index].generation == handle.generation
    }

    private func recordPlace(_ handle: Handle) -> UInt32? {
        isOpen(handle) ? connections[handle.index].recordPlace(tables) : nil
    }
}
