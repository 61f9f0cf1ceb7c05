import Addresses
import BrokerAPI
import OperatorLog
import Structures

/// Live traces: what each follows, the lines that wait for its viewer, and the connections that are
/// looked at for them.
///
/// It knows no socket and no shard; ``BrokerLoop`` gives it bytes and events. A trace holds at most
/// ``mostLines`` and ``mostBytes``, and ends by its time, or when nobody has asked for its lines for
/// ``patience``.
struct Tracer {
    private struct Trace {
        let request: TraceRequest
        let network: IPNetwork?
        let end: MonotonicTime
        var askedAt: MonotonicTime
        var budget: LineBudget
        var lines: [TraceLine] = []
        var bytes = 0
        /// Lines left out since the last answer.
        var leftOut = 0
    }

    /// A connection that traces look at, or have found to be none of theirs.
    private struct Tap {
        let handle: Handle
        var traces: [UInt32]
        var clientID: String?
        let address: String
        var received = PacketTap()
        var sent = PacketTap()
        /// Unsent output that was looked at.
        var seenOutput = 0
    }

    private static let mostLines = 2_000
    private static let mostBytes = 1 << 20
    private static let mostTaps = 20_000
    /// Milliseconds without a question after which a trace ends.
    private static let patience: UInt64 = 15_000

    private var traces: [UInt32: Trace] = [:]
    private var taps: [UInt32: Tap] = [:]
    private var lastID: UInt32 = 0
    /// True while there is any trace.
    private(set) var isActive = false
    private(set) var followsAddresses = false
    private(set) var followsClients = false

    // MARK: Traces

    /// Begins a trace; `nil` when there are too many.
    mutating func begin(_ request: TraceRequest, at now: MonotonicTime) -> UInt32? {
        guard traces.count < TraceRequest.most else { return nil }
        lastID &+= 1
        var network: IPNetwork?
        if case .address(let text) = request.subject { network = IPNetwork(text) }
        traces[lastID] = Trace(
            request: request, network: network,
            end: now.advanced(byMilliseconds: UInt64(request.seconds) * 1_000), askedAt: now,
            budget: LineBudget(perSecond: Int(request.linesPerSecond)))
        refresh()
        return lastID
    }

    /// The lines since the last call; `nil` for a trace that has ended.
    mutating func take(_ id: UInt32, at now: MonotonicTime, wallClockMs: Int64) -> TraceLines? {
        guard var trace = traces[id] else { return nil }
        var lines = trace.lines
        if trace.leftOut > 0 {
            lines.append(
                TraceLine(
                    atMs: wallClockMs, kind: .trace, text: "\(trace.leftOut) lines are left out"))
        }
        let isOver = now >= trace.end
        if isOver {
            lines.append(TraceLine(atMs: wallClockMs, kind: .trace, text: "the time is over"))
        }
        (trace.lines, trace.bytes, trace.leftOut, trace.askedAt) = ([], 0, 0, now)
        traces[id] = trace
        return TraceLines(lines: lines, isOver: isOver)
    }

    /// Ends a trace.
    mutating func end(_ id: UInt32) {
        traces[id] = nil
        for (index, tap) in taps where tap.traces.contains(id) {
            taps[index]?.traces.removeAll { $0 == id }
        }
        refresh()
    }

    /// Traces whose viewers have gone.
    func abandoned(at now: MonotonicTime) -> [UInt32] {
        traces.filter { now.milliseconds(since: $0.value.askedAt) > Self.patience }.map(\.key)
    }

    /// The traces that follow a client.
    func following(client: [UInt8]) -> [UInt32] {
        traces.compactMap { id, trace in
            guard case .client(let text) = trace.request.subject, text.utf8.elementsEqual(client)
            else { return nil }
            return id
        }
    }

    private func following(_ address: IPAddress) -> [UInt32] {
        traces.compactMap { id, trace in trace.network?.contains(address) == true ? id : nil }
    }

    private mutating func refresh() {
        isActive = !traces.isEmpty
        followsAddresses = traces.values.contains { $0.network != nil }
        followsClients = traces.values.contains {
            if case .client = $0.request.subject { true } else { false }
        }
        if !isActive { taps = [:] }
    }

    // MARK: Connections

    /// True for a connection of which it is not known whose it is.
    func isUnknown(_ handle: Handle) -> Bool { taps[handle.index]?.handle != handle }

    /// Looks at a connection for the traces of its address, and for those of its client when it is
    /// named.
    mutating func watch(_ handle: Handle, _ address: IPAddress, client: [UInt8]?) {
        guard taps.count < Self.mostTaps else { return }
        var found = followsAddresses ? following(address) : []
        if let client { found += following(client: client) }
        guard followsAddresses || !found.isEmpty else { return }
        taps[handle.index] = Tap(
            handle: handle, traces: found,
            clientID: client.map { String(decoding: $0, as: UTF8.self) }, address: address.text)
    }

    mutating func forget(_ handle: Handle) {
        if !isUnknown(handle) { taps[handle.index] = nil }
    }

    /// Lines that a trace takes now.
    func room(of id: UInt32, atMs wallClockMs: Int64) -> Int {
        guard let trace = traces[id], trace.bytes < Self.mostBytes else { return 0 }
        return min(
            Self.mostLines - trace.lines.count,
            trace.budget.available(atMilliseconds: UInt64(max(0, wallClockMs))))
    }

    /// What looking at bytes has cost: packets that became text, and others.
    struct Looked {
        var bytes = 0
        var told = 0
        var untold = 0
    }

    /// Takes bytes of a connection that the broker has handled.
    @discardableResult
    mutating func received(
        _ handle: Handle, _ bytes: UnsafeRawBufferPointer, is5: Bool = false,
        atMs wallClockMs: Int64
    ) -> Looked {
        guard var tap = taps[handle.index], tap.handle == handle, !tap.traces.isEmpty else {
            return Looked()
        }
        var packets = Packets(room: room(of: tap, wallClockMs), is5: is5)
        tap.received.feed(bytes) { packets.add($0, size: $1) }
        taps[handle.index] = tap
        return tell(tap, .received, packets, bytes.count, wallClockMs)
    }

    /// The most lines that any trace of a connection takes now.
    private func room(of tap: Tap, _ wallClockMs: Int64) -> Int {
        tap.traces.reduce(0) { max($0, room(of: $1, atMs: wallClockMs)) }
    }

    /// Packets for the traces of one connection: text is made only of those for which there is room.
    private struct Packets {
        let room: Int
        let is5: Bool
        var texts: [PacketText] = []
        var untold = 0

        init(room: Int, is5: Bool) {
            self.room = room
            self.is5 = is5
        }

        mutating func add(_ bytes: [UInt8], size: Int) {
            if texts.count < room {
                texts.append(PacketText(bytes, size: size, is5: is5))
            } else {
                untold += 1
            }
        }
    }

    /// True for a connection whose output is looked at.
    func watchesOutput(of handle: Handle) -> Bool {
        guard let tap = taps[handle.index] else { return false }
        return tap.handle == handle && !tap.traces.isEmpty
    }

    /// Takes the unsent output of a connection, of which it has seen some.
    @discardableResult
    mutating func output(
        _ handle: Handle, _ parts: [UnsafeRawBufferPointer], is5: Bool = false,
        atMs wallClockMs: Int64
    ) -> Looked {
        guard var tap = taps[handle.index], tap.handle == handle else { return Looked() }
        var packets = Packets(room: room(of: tap, wallClockMs), is5: is5)
        var skip = tap.seenOutput
        var bytes = 0
        for part in parts {
            let new = part.dropFirst(skip)
            skip -= part.count - new.count
            bytes += new.count
            tap.sent.feed(UnsafeRawBufferPointer(rebasing: new)) { packets.add($0, size: $1) }
        }
        taps[handle.index] = tap
        return tell(tap, .sent, packets, bytes, wallClockMs)
    }

    /// Notes how much of the output that was looked at is unsent.
    mutating func unsent(_ handle: Handle, _ count: Int) {
        if !isUnknown(handle) { taps[handle.index]?.seenOutput = count }
    }

    private mutating func tell(
        _ tap: Tap, _ kind: TraceLine.Kind, _ packets: Packets, _ bytes: Int,
        _ wallClockMs: Int64
    ) -> Looked {
        for packet in packets.texts {
            for id in tap.traces {
                add(
                    TraceLine(
                        atMs: wallClockMs, kind: kind, clientID: tap.clientID,
                        address: tap.address, text: packet.text),
                    payload: packet.payload, to: id)
            }
        }
        for id in tap.traces { leaveOut(packets.untold, of: id) }
        return Looked(
            bytes: bytes, told: packets.texts.count * max(1, tap.traces.count),
            untold: packets.untold)
    }

    // MARK: Events

    /// Tells the traces of a client what the broker did.
    mutating func event(_ text: String, client: [UInt8], atMs wallClockMs: Int64) {
        guard followsClients else { return }
        for id in following(client: client) {
            add(
                TraceLine(
                    atMs: wallClockMs, kind: .event,
                    clientID: String(decoding: client, as: UTF8.self), text: text),
                payload: [], to: id)
        }
    }

    /// Tells the traces of an address what the broker did with a connection of which it reads nothing.
    mutating func event(_ text: String, from address: IPAddress, atMs wallClockMs: Int64) {
        guard followsAddresses else { return }
        for id in following(address) {
            add(
                TraceLine(atMs: wallClockMs, kind: .event, address: address.text, text: text),
                payload: [], to: id)
        }
    }

    /// Tells traces what became of a message.
    mutating func event(
        _ text: String, client: [UInt8]?, payload: [UInt8], to traces: [UInt32],
        atMs wallClockMs: Int64
    ) {
        for id in traces {
            add(
                TraceLine(
                    atMs: wallClockMs, kind: .event,
                    clientID: client.map { String(decoding: $0, as: UTF8.self) }, text: text),
                payload: payload, to: id)
        }
    }

    /// Counts lines of a trace that were not even made.
    mutating func leaveOut(_ count: Int, of id: UInt32) {
        if count > 0 { traces[id]?.leftOut += count }
    }

    private mutating func add(_ line: TraceLine, payload: [UInt8], to id: UInt32) {
        guard var trace = traces[id] else { return }
        var line = line
        if trace.request.showsPayloads, !payload.isEmpty {
            line.payload = String(decoding: payload, as: UTF8.self)
        }
        let bytes = line.text.utf8.count + (line.payload?.utf8.count ?? 0) + 200
        if trace.lines.count < Self.mostLines, trace.bytes + bytes <= Self.mostBytes,
            trace.budget.take(atMilliseconds: UInt64(max(0, line.atMs))) != nil
        {
            trace.lines.append(line)
            trace.bytes += bytes
        } else {
            trace.leftOut += 1
        }
        traces[id] = trace
    }
}
