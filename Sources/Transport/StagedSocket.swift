import Glibc
import Structures

/// A connection's socket and its stage, in 32 bytes; an idle plain connection needs nothing else.
///
/// Each event has one method here, and may move the connection to its next stage; see ``Stage``.
/// Objects that do not fit a trivial record are in tables of the ``Reactor``, which passes them in.
/// The reactor tells the kernel when ``interest`` has changed.
struct StagedSocket: BitwiseCopyable {
    /// -1 while the record is unused.
    let descriptor: CInt
    /// Distinguishes the connection from earlier ones at the same index.
    let generation: UInt32
    /// An incomplete packet or PROXY header.
    private(set) var input = KeptInput()
    private(set) var stage = Stage.plain
    private(set) var interest: Interest
    /// True while the owner holds the input back; only other input counts as unfinished.
    private(set) var isHeldBack = false

    init(_ descriptor: CInt, generation: UInt32, interest: Interest) {
        self.descriptor = descriptor
        self.generation = generation
        self.interest = interest
    }

    /// The content of an unused record.
    static var unused: StagedSocket { StagedSocket(-1, generation: 0, interest: []) }

    var isUsed: Bool { descriptor >= 0 }

    /// Sets the first stage, before anything is read or sent.
    mutating func begin(
        proxyHeader: Bool, isSecured: Bool, webSocket: UInt8?, _ tables: inout StageTables
    ) {
        guard case .plain = stage else { preconditionFailure("a connection began twice") }
        let header = ProxyHeaderStage(isSecured: isSecured, webSocket: webSocket)
        stage = proxyHeader ? .proxyHeader(header) : header.next(&tables)
    }

    // MARK: Bytes

    /// Reads from the socket; `index` is the connection's index.
    @inline(__always)
    mutating func receive(
        _ index: UInt32, _ tables: inout StageTables, _ bench: inout Workbench
    ) -> StageInput {
        let former = input.capacity
        let received: StageInput
        switch stage {
        case .plain: received = PlainStage.receive(descriptor, &input, &bench)
        case .records(let place):
            received = tables.records[place.number].receive(descriptor, &input, &bench)
            if tables.records[place.number].owesKeyUpdate { interest.insert(.room) }
        case .webSocket(let place):
            if let rules = tables.rules(awaitedBy: place) {
                received = tables.webSockets[place.number].receiveRequest(
                    descriptor, &input, &tables.records, rules, &bench)
            } else {
                received = tables.webSockets[place.number].receive(
                    descriptor, &input, &tables.records, &bench)
            }
            if tables.owesRoom(place) { interest.insert(.room) }
        case .handshake(let handshake):
            received = beginStep(handshake) ? .stepIsDue : .wouldBlock
        case .proxyHeader(let header):
            received = header.receive(descriptor, &input, &bench)
            if case .proxyHeader = received { stage = header.next(&tables) }
        }
        noteInput(index, former, isNew: false, &bench)
        return received
    }

    /// Sends output, at the owner's request or because the socket has room: `most` bytes, or those of a
    /// frame of WebSocket that has begun and as many again.
    @inline(__always)
    mutating func send(
        _ output: inout OutputQueue, atMost most: Int, _ tables: inout StageTables,
        _ bench: inout Workbench
    ) -> StageOutput {
        let sent: StageOutput
        switch stage {
        case .plain:
            sent =
                output.count <= most
                ? bench.send(descriptor, &output)
                : bench.send(descriptor, &output, atMost: most)
        case .records(let place):
            sent = tables.records[place.number].send(descriptor, &output, atMost: most, &bench)
        case .webSocket(let place):
            sent = tables.webSockets[place.number].send(
                descriptor, &output, atMost: most, &tables.records, &bench)
        case .handshake(let handshake): return beginStep(handshake) ? .stepIsDue : .blocked
        case .proxyHeader:
            // The broker sends nothing before the PROXY header has arrived.
            output.removeAll(in: bench.pool)
            return .all
        }
        switch sent {
        case .all: interest.remove(.room)
        case .blocked: interest.insert(.room)
        case .failed, .stepIsDue: break
        }
        return sent
    }

    /// Asks for an event when the socket has room.
    mutating func awaitRoom() { interest.insert(.room) }

    /// Ends the broker's direction after all output.
    mutating func finishSending(_ tables: inout StageTables, _ bench: inout Workbench) {
        if case .webSocket(let place) = stage {
            tables.webSockets[place.number].sendEnd(descriptor, &tables.records, &bench)
        }
        if let place = recordPlace(tables) {
            tables.records[place].sendCloseNotify(descriptor, &bench)
        }
        SocketShutdown.ofSending(descriptor)
    }

    /// Keeps the input after the first consumed bytes.
    @inline(__always)
    mutating func keep(
        _ bytes: UnsafeRawBufferPointer, from consumed: Int, _ index: UInt32,
        _ bench: inout Workbench
    ) {
        let former = input.capacity
        input.keep(bytes, from: consumed, in: bench.pool)
        noteInput(index, former, isNew: consumed > 0, &bench)
    }

    /// Sets whether the owner holds the input back. Buffers do not change while it does.
    @inline(__always)
    mutating func setHeldBack(
        _ isHeldBack: Bool, _ tables: borrowing StageTables, _ bench: inout Workbench
    ) {
        guard isHeldBack != self.isHeldBack else { return }
        self.isHeldBack = isHeldBack
        let capacity = heldBytes(tables)
        bench.held.noteHeldBack(isHeldBack ? capacity : -capacity)
    }

    /// Drops the kept input.
    mutating func releaseInput(_ index: UInt32, _ bench: inout Workbench) {
        let former = input.capacity
        input.release(in: bench.pool)
        noteInput(index, former, isNew: false, &bench)
    }

    /// `isNew` means that another packet begins in the buffer.
    @inline(__always)
    private func noteInput(
        _ index: UInt32, _ former: Int, isNew: Bool, _ bench: inout Workbench
    ) {
        guard input.capacity != former || (isNew && input.capacity > 0) else { return }
        bench.held.notePacket(index, from: former, to: input.capacity, isNew: isNew)
    }

    /// Sets whether input, the end of the peer's direction or neither is reported; with `once` one
    /// last event. Not during a handshake.
    mutating func setReading(_ reading: Interest) {
        interest = interest.subtracting([.input, .end, .once]).union(reading)
    }

    /// Its socket is among those of connected clients from now on.
    mutating func endNewcomer() { interest.remove(.newcomer) }

    /// Memory of the buffers for incomplete packets, TLS records and frames.
    func heldBytes(_ tables: borrowing StageTables) -> Int {
        var bytes = input.capacity
        if case .plain = stage { return bytes }
        if let place = recordPlace(tables) { bytes += tables.records[place].heldBytes }
        if let place = webSocketPlace { bytes += tables.webSockets[place].heldBytes }
        return bytes
    }

    /// The index of the record stage, also of one that carries WebSocket; `nil` in any other stage.
    func recordPlace(_ tables: borrowing StageTables) -> UInt32? {
        switch stage {
        case .records(let place): place.number
        case .webSocket(let place): tables.webSockets[place.number].recordPlace
        case .plain, .handshake, .proxyHeader: nil
        }
    }

    /// The index of the WebSocket stage; `nil` in any other stage.
    var webSocketPlace: UInt32? {
        if case .webSocket(let place) = stage { place.number } else { nil }
    }

    // MARK: The handshake

    /// True until the handshake has ended, including its PROXY header.
    var isShakingHands: Bool {
        switch stage {
        case .handshake: true
        case .proxyHeader(let header): header.isSecured
        case .records, .webSocket, .plain: false
        }
    }

    /// True when the handshake waits for its client; no step is running.
    var awaitsClient: Bool {
        if case .handshake(let handshake) = stage, handshake.isStepping { return false }
        return isShakingHands
    }

    /// Starts a step; false when one is running.
    private mutating func beginStep(_ handshake: HandshakeStage) -> Bool {
        guard !handshake.isStepping else { return false }
        setStepping(handshake, true)
        return true
    }

    /// Ends a step, after which the kernel is asked for one event; false when none was running.
    mutating func endStep() -> Bool {
        guard case .handshake(let handshake) = stage, handshake.isStepping else { return false }
        setStepping(handshake, false)
        interest.insert(.once)
        return true
    }

    private mutating func setStepping(_ handshake: HandshakeStage, _ isStepping: Bool) {
        var handshake = handshake
        handshake.isStepping = isStepping
        stage = .handshake(handshake)
    }

    /// Moves to the record stage, and to WebSocket over it, after a successful handshake.
    mutating func establish(_ records: RecordStage.Index, _ tables: inout StageTables) {
        guard case .handshake(let handshake) = stage else {
            preconditionFailure("a connection without a handshake was established")
        }
        stage = tables.last(over: records, webSocket: handshake.webSocket)
        interest.remove(.once)
    }

    // MARK: The end

    enum Ending {
        /// The socket can be closed now.
        case now
        /// As ``now``; an unfinished handshake ends with it.
        case duringHandshake
        /// The socket closes when the running handshake step has ended.
        case afterStep
    }

    /// Ends the connection and releases its memory except the handshake.
    mutating func end(
        _ index: UInt32, _ tables: inout StageTables, _ bench: inout Workbench
    ) -> Ending {
        setHeldBack(false, tables, &bench)
        releaseInput(index, &bench)
        switch stage {
        case .plain: return .now
        case .records(let place):
            tables.closeRecords(place.number, descriptor, &bench)
            return .now
        case .webSocket(let place):
            tables.closeWebSocket(place.number, descriptor, &bench)
            return .now
        case .handshake(let handshake):
            return handshake.isStepping ? .afterStep : .duringHandshake
        case .proxyHeader(let header): return header.isSecured ? .duringHandshake : .now
        }
    }
}
