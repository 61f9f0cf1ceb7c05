import Glibc
import Structures

/// A connection of WebSocket: the request for it, then frames, over plain bytes or TLS records.
///
/// ```
/// upgrading ──┬──> open ──┬──> peerClosed ──> ended
///             │           ├──> broken ──────> refused ──> ended
///             │           └─────────────────────────────> ended
///             └──> refused ─────────────────────────────> ended
/// ```
/// Input is unmasked where it was read. A turn's output gets one frame, whose header stands before it in
/// the owner's queue. An idle connection holds no buffer.
struct WebSocketStage: BitwiseCopyable {
    /// The index of a WebSocket stage in its reactor.
    struct Index: BitwiseCopyable {
        let number: UInt32
    }

    private enum Phase: UInt8, BitwiseCopyable {
        /// Waiting for the whole request; `detail` is the listener whose rules it must meet.
        case upgrading
        case open
        /// A close frame has been read, and nothing behind it; the owner ends the connection.
        case peerClosed
        /// Behind data, the peer has broken a rule, `detail`; the owner is told with the next read.
        case broken
        /// The owner knows of the broken rule, `detail`; the peer has still to be told.
        case refused
        /// The last frame or response has been sent.
        case ended
    }

    /// Bytes of a connection that is not idle: an unfinished header or control frame of the peer,
    /// control frames that the socket has not taken, and a token whose CONNECT has not come.
    private struct Aside {
        var pending = OutputQueue()
        /// The token of the request, until the owner has used it.
        var token: SharedBytes?
        var begunCount = 0

        static var begunOffset: Int { MemoryLayout<Aside>.stride }
        static var size: Int { begunOffset + FrameDecoder.mostUnread }
    }

    /// Beyond this many unsent bytes of control frames, pings are not answered: their sender does not read.
    private static var mostPending: Int { 512 }

    private var aside: UnsafeMutablePointer<Aside>?
    private var decoder = FrameDecoder()
    private var phase = Phase.upgrading
    private var detail: UInt8
    /// The record stage that carries the frames; ``noIndex`` over plain bytes.
    private let carrier: UInt32
    /// The first bytes of the owner's output that belong to a frame whose header is among them or sent.
    private var framed: UInt32 = 0
    /// The status code with which the broker ends an open connection.
    private var closeCode = WebSocketCloseCode.normal

    init(listener: UInt8, carrier: RecordStage.Index?) {
        detail = listener
        self.carrier = carrier?.number ?? noIndex
    }

    /// The index of the record stage that carries the frames; `nil` over plain bytes.
    var recordPlace: UInt32? { carrier == noIndex ? nil : carrier }

    /// Memory of an unfinished header or control frame, and of a token.
    var heldBytes: Int {
        guard let aside, aside.pointee.begunCount > 0 || aside.pointee.token != nil else {
            return 0
        }
        return BytePool.capacity(for: Aside.size) + (aside.pointee.token?.capacity ?? 0)
    }

    /// The token of the request, until ``releaseToken(_:)``; empty when there is none.
    var token: UnsafeRawBufferPointer {
        guard let token = aside?.pointee.token else {
            return UnsafeRawBufferPointer(start: nil, count: 0)
        }
        return UnsafeRawBufferPointer(start: token.bytes, count: token.count)
    }

    /// True while control frames or a response wait for room in the socket.
    var owesRoom: Bool { aside.map { !$0.pointee.pending.isEmpty } ?? false }

    /// The listener whose rules the request must meet; `nil` once it has come.
    var awaitedListener: Int? { phase == .upgrading ? Int(detail) : nil }

    /// True when the peer has still to be told of the end.
    var owesAnswer: Bool {
        switch phase {
        case .open, .broken, .refused: true
        case .upgrading, .peerClosed, .ended: false
        }
    }

    /// True until the peer is told of the end: what it sent before its own end or mistake is answered.
    private var sendsData: Bool {
        switch phase {
        case .open, .peerClosed, .broken: true
        case .upgrading, .refused, .ended: false
        }
    }

    // MARK: Reading

    /// Reads once, when the request has come. Data comes after the kept input.
    @inline(__always)
    mutating func receive(
        _ descriptor: CInt, _ kept: inout KeptInput, _ records: inout Slab<RecordStage>,
        _ bench: inout Workbench
    ) -> StageInput {
        switch phase {
        case .upgrading: preconditionFailure("frames were read before the request")
        case .open: return receiveFrames(descriptor, &kept, &records, &bench)
        case .peerClosed: return .endOfStream
        case .broken: return reportFlaw()
        case .refused, .ended:
            // The peer may still send while it has not read of the end.
            let (count, code) = bench.receive(
                descriptor, into: bench.input, count: Workbench.inputBytes)
            return count > 0 ? .wouldBlock : .nothing(count, code)
        }
    }

    /// Reads the bytes that carry the frames; they come `gap` bytes behind the kept input.
    @inline(__always)
    private func carrierReceive(
        _ descriptor: CInt, _ kept: inout KeptInput, gap: Int, _ records: inout Slab<RecordStage>,
        _ bench: inout Workbench
    ) -> StageInput {
        carrier == noIndex
            ? PlainStage.receive(descriptor, &kept, gap: gap, &bench)
            : records[carrier].receive(descriptor, &kept, gap: gap, &bench)
    }

    /// Reads once, before the whole request has come.
    mutating func receiveRequest(
        _ descriptor: CInt, _ kept: inout KeptInput, _ records: inout Slab<RecordStage>,
        _ rules: WebSocketRules, _ bench: inout Workbench
    ) -> StageInput {
        let seen = kept.count
        let received = carrierReceive(descriptor, &kept, gap: 0, &records, &bench)
        guard case .bytes(let bytes) = received else { return received }
        let request: UpgradeRequest?
        do throws(WebSocketFlaw) {
            request = try UpgradeRequest.decode(bytes, rules: rules, read: seen)
        } catch {
            kept.release(in: bench.pool)
            detail = error.rawValue
            return reportFlaw()
        }
        guard let request else {
            kept.keep(bytes, from: 0, in: bench.pool)
            return .wouldBlock
        }
        precondition(seen <= KeptInput.movableBytes, "\(seen) bytes of a request were kept")
        // They are in the shared buffer, as the kept ones have been moved there.
        kept.release(in: bench.pool)
        phase = .open
        if let token = request.token { hold(token, &bench) }
        post(UpgradeResponse.switching(request), bench.pool)
        flush(descriptor, &records, &bench)
        let rest = UnsafeMutableRawBufferPointer(
            mutating: UnsafeRawBufferPointer(rebasing: bytes[request.size...]))
        guard let base = rest.baseAddress, rest.count > 0 else { return .wouldBlock }
        return take(descriptor, rest, behind: base, keptCount: 0, &records, &bench)
    }

    @inline(__always)
    private mutating func receiveFrames(
        _ descriptor: CInt, _ kept: inout KeptInput, _ records: inout Slab<RecordStage>,
        _ bench: inout Workbench
    ) -> StageInput {
        let (keptCount, begun) = (kept.count, aside?.pointee.begunCount ?? 0)
        let received = carrierReceive(descriptor, &kept, gap: begun, &records, &bench)
        guard case .bytes(let bytes) = received, let start = bytes.baseAddress else {
            return received
        }
        let base = UnsafeMutableRawPointer(mutating: start)
        let frames = UnsafeMutableRawBufferPointer(
            start: base + keptCount, count: bytes.count - keptCount)
        if begun > 0, let aside {
            (base + keptCount).copyMemory(
                from: UnsafeRawPointer(aside) + Aside.begunOffset, byteCount: begun)
        }
        return take(descriptor, frames, behind: base, keptCount: keptCount, &records, &bench)
    }

    /// Takes the data of frames, which follow `keptCount` bytes of earlier data at `base`.
    @inline(__always)
    private mutating func take(
        _ descriptor: CInt, _ frames: UnsafeMutableRawBufferPointer,
        behind base: UnsafeMutableRawPointer, keptCount: Int, _ records: inout Slab<RecordStage>,
        _ bench: inout Workbench
    ) -> StageInput {
        let read = decoder.decode(
            frames, mostPayload: bench.mostFramePayload, control: bench.control)
        let rest = UnsafeRawBufferPointer(rebasing: frames[read.consumed...])
        if aside != nil || !rest.isEmpty || read.pingSize != nil || read.close != nil {
            takeAside(read, rest, &bench)
            if framed == 0 { flush(descriptor, &records, &bench) }
        }
        guard read.produced > 0 else {
            switch phase {
            case .peerClosed: return .endOfStream
            case .broken: return reportFlaw()
            case .upgrading, .open, .refused, .ended: return .wouldBlock
            }
        }
        // The data is the owner's first; an event then has it read the end.
        if phase != .open { SocketShutdown.ofReading(descriptor) }
        return .bytes(UnsafeRawBufferPointer(start: base, count: keptCount + read.produced))
    }

    /// Takes all but the data of a read: `rest` has not been decoded.
    private mutating func takeAside(
        _ read: FrameDecoder.Result, _ rest: UnsafeRawBufferPointer, _ bench: inout Workbench
    ) {
        if let code = read.close {
            phase = .peerClosed
            closeCode = code
        } else if let flaw = read.flaw {
            phase = .broken
            detail = flaw.rawValue
        } else if let size = read.pingSize,
            (aside?.pointee.pending.count ?? 0) <= Self.mostPending
        {
            let payload = UnsafeRawBufferPointer(start: bench.control, count: size)
            post(ServerFrame.pong(payload), bench.pool)
        }
        let former = heldBytes
        keepBegun(phase == .open ? rest : UnsafeRawBufferPointer(start: nil, count: 0), bench.pool)
        bench.held.noteRecord(from: former, to: heldBytes)
    }

    /// Tells the owner of the broken rule.
    private mutating func reportFlaw() -> StageInput {
        phase = .refused
        guard let flaw = WebSocketFlaw(rawValue: detail) else {
            preconditionFailure("\(detail) is no rule of WebSocket")
        }
        return .brokenWebSocket(flaw)
    }

    // MARK: Bytes aside

    private mutating func keepBegun(_ bytes: UnsafeRawBufferPointer, _ pool: BytePool) {
        precondition(
            bytes.count <= FrameDecoder.mostUnread, "\(bytes.count) bytes of a frame begun")
        guard let base = bytes.baseAddress, bytes.count > 0 else {
            aside?.pointee.begunCount = 0
            releaseAside(pool)
            return
        }
        let aside = makeAside(pool)
        (UnsafeMutableRawPointer(aside) + Aside.begunOffset).copyMemory(
            from: base, byteCount: bytes.count)
        aside.pointee.begunCount = bytes.count
    }

    /// Has control frames or a response sent before all other output.
    private mutating func post(_ bytes: [UInt8], _ pool: BytePool) {
        let aside = makeAside(pool)
        bytes.withUnsafeBytes { aside.pointee.pending.append($0, pool: pool) }
    }

    private mutating func makeAside(_ pool: BytePool) -> UnsafeMutablePointer<Aside> {
        if let aside { return aside }
        let made = pool.allocate(Aside.size).bindMemory(to: Aside.self, capacity: 1)
        made.initialize(to: Aside())
        aside = made
        return made
    }

    private mutating func releaseAside(_ pool: BytePool) {
        guard let aside, aside.pointee.begunCount == 0, aside.pointee.pending.isEmpty,
            aside.pointee.token == nil
        else { return }
        pool.deallocate(UnsafeMutableRawPointer(aside), count: Aside.size)
        self.aside = nil
    }

    /// Keeps the request's token for the owner.
    private mutating func hold(_ token: [UInt8], _ bench: inout Workbench) {
        let former = heldBytes
        let bytes = SharedBytes(count: token.count, pool: bench.pool)
        token.withUnsafeBytes { source in
            UnsafeMutableRawBufferPointer(start: bytes.bytes, count: bytes.count)
                .copyMemory(from: source)
        }
        makeAside(bench.pool).pointee.token = bytes
        bench.held.noteToken(from: former, to: heldBytes, change: 1)
    }

    /// Drops the token, which the owner has used or nobody will.
    mutating func releaseToken(_ bench: inout Workbench) {
        guard let aside, let token = aside.pointee.token else { return }
        let former = heldBytes
        token.release(in: bench.pool)
        aside.pointee.token = nil
        bench.held.noteToken(from: former, to: heldBytes, change: -1)
        releaseAside(bench.pool)
    }

    /// Sends what ``post(_:_:)`` has added, between two frames of the owner's output.
    @discardableResult
    private mutating func flush(
        _ descriptor: CInt, _ records: inout Slab<RecordStage>, _ bench: inout Workbench
    ) -> StageOutput {
        guard let aside, !aside.pointee.pending.isEmpty else { return .all }
        let sent =
            carrier == noIndex
            ? bench.send(descriptor, &aside.pointee.pending)
            : records[carrier].send(descriptor, &aside.pointee.pending, &bench)
        if case .all = sent { releaseAside(bench.pool) }
        return sent
    }

    // MARK: Sending

    /// Sends output, of which what waits now becomes one frame; of more than `most` bytes so many.
    @inline(__always)
    mutating func send(
        _ descriptor: CInt, _ output: inout OutputQueue, atMost most: Int,
        _ records: inout Slab<RecordStage>, _ bench: inout Workbench
    ) -> StageOutput {
        var left = most
        while true {
            if framed == 0 {
                if aside != nil {
                    let sent = flush(descriptor, &records, &bench)
                    guard case .all = sent else { return sent }
                }
                guard !output.isEmpty else {
                    return carrierSend(descriptor, &output, &records, &bench)
                }
                guard sendsData else { break }
                guard left > 0 else { return .all }
                let payload = min(output.count, left, ServerFrame.largestPayload)
                left -= payload
                let header = ServerFrame.prependBinary(payload, to: &output, pool: bench.pool)
                framed = UInt32(header + payload)
            }
            // The owner may have dropped what was left of a frame.
            guard output.count >= Int(framed), phase != .ended else { break }
            let before = output.count
            let sent = carrierSend(descriptor, &output, &records, &bench)
            framed -= min(framed, UInt32(clamping: before - output.count))
            guard case .all = sent else { return sent }
        }
        if framed > 0 { phase = .ended }
        framed = 0
        output.removeAll(in: bench.pool)
        return .all
    }

    /// Sends the output that belongs to a frame.
    @inline(__always)
    private func carrierSend(
        _ descriptor: CInt, _ output: inout OutputQueue, _ records: inout Slab<RecordStage>,
        _ bench: inout Workbench
    ) -> StageOutput {
        if carrier != noIndex {
            return records[carrier].send(descriptor, &output, atMost: Int(framed), &bench)
        }
        return output.count == Int(framed)
            ? bench.send(descriptor, &output)
            : bench.send(descriptor, &output, atMost: Int(framed))
    }

    // MARK: Ending

    /// Sets the status code of the close frame with which the broker ends the connection.
    mutating func setCloseCode(_ code: WebSocketCloseCode) {
        if phase == .open { closeCode = code }
    }

    /// Tells the peer of the end, once and without waiting: by a close frame, or by the response to its
    /// request. Not in the middle of a frame.
    mutating func sendEnd(
        _ descriptor: CInt, _ records: inout Slab<RecordStage>, _ bench: inout Workbench
    ) {
        let phase = phase
        self.phase = .ended
        guard framed == 0 else { return }
        switch phase {
        case .open, .peerClosed: post(ServerFrame.close(closeCode), bench.pool)
        case .broken, .refused:
            switch WebSocketFlaw(rawValue: detail)?.answer {
            case .close(let code)?: post(ServerFrame.close(code), bench.pool)
            case .response(let status)?:
                guard let flaw = WebSocketFlaw(rawValue: detail) else { return }
                post(UpgradeResponse.refusing(flaw, status: status), bench.pool)
            case nil: preconditionFailure("\(detail) is no rule of WebSocket")
            }
        case .upgrading, .ended: return
        }
        flush(descriptor, &records, &bench)
    }

    /// Frees the memory of a closing connection.
    mutating func close(_ bench: inout Workbench) {
        releaseToken(&bench)
        bench.held.noteRecord(from: heldBytes, to: 0)
        aside?.pointee.pending.removeAll(in: bench.pool)
        aside?.pointee.begunCount = 0
        releaseAside(bench.pool)
    }
}
