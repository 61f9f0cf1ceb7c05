import Glibc
import Structures

/// The socket of one connection and the stage that its bytes pass: 32 bytes, and nothing else for an
/// idle plain connection.
///
/// The connection moves from stage to stage: ``Stage`` draws the way, and each event has one method here.
/// Objects that no trivial record can hold are in tables of the ``Reactor``, which hands them in, and
/// which tells the kernel when ``interest`` has changed.
struct StagedSocket: BitwiseCopyable {
    /// -1 while the record is unused.
    let descriptor: CInt
    /// Differs from that of the former connection in this place.
    let generation: UInt32
    /// The begin of a packet that the owner could not use yet, or of a proxy's header.
    private(set) var input = KeptInput()
    private(set) var stage = Stage.plain
    private(set) var interest: Interest

    init(_ descriptor: CInt, generation: UInt32, isOneShot: Bool) {
        self.descriptor = descriptor
        self.generation = generation
        interest = Interest(isOneShot: isOneShot)
    }

    /// A record without a connection, which no handle names.
    static var unused: StagedSocket { StagedSocket(-1, generation: 0, isOneShot: false) }

    var isUsed: Bool { descriptor >= 0 }

    /// The first stage is chosen, before anything is read or sent.
    mutating func begin(proxyHeader: Bool, isSecured: Bool) {
        guard case .plain = stage else { preconditionFailure("a connection began twice") }
        let header = ProxyHeaderStage(isSecured: isSecured)
        stage = proxyHeader ? .proxyHeader(header) : header.next
    }

    // MARK: Bytes

    /// The socket can be read; `index` is the connection's place.
    mutating func receive(
        _ index: UInt32, _ records: inout Slab<RecordStage>, _ bench: inout Workbench
    ) -> StageInput {
        let former = input.capacity
        defer { noteInput(index, former, isNew: false, &bench) }
        switch stage {
        case .plain: return PlainStage.receive(descriptor, &input, &bench)
        case .records(let place):
            let received = records[place.number].receive(descriptor, &input, &bench)
            if records[place.number].owesKeyUpdate { interest.awaitsWritable = true }
            return received
        case .handshake(let handshake): return beginStep(handshake) ? .stepIsDue : .wouldBlock
        case .proxyHeader(let header):
            let received = header.receive(descriptor, &input, &bench)
            if case .proxyHeader = received { stage = header.next }
            return received
        }
    }

    /// The owner has output, or the socket takes bytes again.
    mutating func send(
        _ output: inout OutputQueue, _ records: inout Slab<RecordStage>,
        _ bench: inout Workbench
    ) -> StageOutput {
        let sent: StageOutput
        switch stage {
        case .plain: sent = bench.send(descriptor, &output)
        case .records(let place):
            sent = records[place.number].send(descriptor, &output, &bench)
        case .handshake(let handshake): return beginStep(handshake) ? .stepIsDue : .blocked
        case .proxyHeader:
            // Nothing is said to a proxy.
            output.removeAll(in: bench.pool)
            return .all
        }
        switch sent {
        case .all: interest.awaitsWritable = false
        case .blocked: interest.awaitsWritable = true
        case .failed, .stepIsDue: break
        }
        return sent
    }

    /// The owner has sent everything: the peer reads it and then the end of the stream.
    mutating func finishSending(
        _ records: inout Slab<RecordStage>, _ bench: inout Workbench
    ) {
        if case .records(let place) = stage {
            records[place.number].sendCloseNotify(descriptor, &bench)
        }
        _ = shutdown(descriptor, CInt(SHUT_WR))
    }

    /// The owner has consumed the first bytes of its input; the others are kept.
    mutating func keep(
        _ bytes: UnsafeRawBufferPointer, from consumed: Int, _ index: UInt32,
        _ bench: inout Workbench
    ) {
        let former = input.capacity
        input.keep(bytes, from: consumed, in: bench.pool)
        noteInput(index, former, isNew: consumed > 0, &bench)
    }

    /// Nobody will read the kept input.
    mutating func releaseInput(_ index: UInt32, _ bench: inout Workbench) {
        let former = input.capacity
        input.release(in: bench.pool)
        noteInput(index, former, isNew: false, &bench)
    }

    /// `isNew` says that another packet begins in the buffer.
    private func noteInput(
        _ index: UInt32, _ former: Int, isNew: Bool, _ bench: inout Workbench
    ) {
        guard input.capacity != former || (isNew && input.capacity > 0) else { return }
        bench.held.notePacket(index, from: former, to: input.capacity, isNew: isNew)
    }

    /// The owner stops or goes on reading.
    mutating func setReading(_ reading: Interest.Reading) { interest.reading = reading }

    /// Memory of its buffers for unfinished packets and TLS records.
    func heldBytes(_ records: borrowing Slab<RecordStage>) -> Int {
        input.capacity + (recordPlace.map { records[$0].heldBytes } ?? 0)
    }

    /// The place of the record stage; `nil` in any other stage.
    var recordPlace: UInt32? {
        if case .records(let place) = stage { place.number } else { nil }
    }

    // MARK: The handshake

    /// Whether the handshake has not ended; a proxy's header before it counts as its begin.
    var isShakingHands: Bool {
        switch stage {
        case .handshake: true
        case .proxyHeader(let header): header.isSecured
        case .records, .plain: false
        }
    }

    /// Whether the handshake waits for its client: no step is under way.
    var awaitsClient: Bool {
        if case .handshake(.stepping) = stage { return false }
        return isShakingHands
    }

    /// A step is due unless one is under way.
    private mutating func beginStep(_ handshake: HandshakeStage) -> Bool {
        guard case .awaitingClient = handshake else { return false }
        stage = .handshake(.stepping)
        return true
    }

    /// A step has ended, and the kernel will be asked for one event; false when none was under way.
    mutating func endStep() -> Bool {
        guard case .handshake(.stepping) = stage else { return false }
        stage = .handshake(.awaitingClient)
        interest.isOneShot = true
        return true
    }

    /// The handshake has succeeded.
    mutating func establish(_ records: RecordStage.Index) {
        stage = .records(records)
        interest.isOneShot = false
    }

    // MARK: The end

    enum Ending {
        /// The socket can be closed.
        case now
        /// As ``now``; the handshake needs its client no more.
        case duringHandshake
        /// The socket closes when the step of its handshake ends.
        case afterStep
    }

    /// The connection closes: releases everything that it holds but the handshake.
    mutating func end(
        _ index: UInt32, _ records: inout Slab<RecordStage>, _ bench: inout Workbench
    ) -> Ending {
        releaseInput(index, &bench)
        switch stage {
        case .plain: return .now
        case .records(let place):
            records[place.number].close(descriptor, &bench)
            records.remove(place.number)
            return .now
        case .handshake(.stepping): return .afterStep
        case .handshake(.awaitingClient): return .duringHandshake
        case .proxyHeader(let header): return header.isSecured ? .duringHandshake : .now
        }
    }
}
