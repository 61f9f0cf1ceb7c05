import BrokerAPI
import BrokerCore
import BrokerFeatures
import MQTTCodec
import Structures
import Transport

/// Live traces: bytes of connections and events of the shard on their way to the ``Tracer``.
///
/// While there is no trace, it costs one look at ``Tracer/isActive`` for each read and each write.
extension BrokerLoop {
    /// Segments of output that are looked at, at a time.
    private static var mostSegments: Int { 1_024 }

    /// Begins a trace; `nil` when there are too many.
    mutating func beginTrace(_ request: TraceRequest) -> UInt32? {
        guard let id = tracer.begin(request, at: shard.now) else { return nil }
        shard.reportsLifecycle = wantsLifecycle
        switch request.subject {
        case .client(let clientID):
            if let connection = shard.connection(of: clientID) {
                watch(connection, client: Array(clientID.utf8))
                // What was already there is not told.
                traceUnsent(connection)
            }
        case .topic(let filter): shard.traceTopics(filter, for: id)
        case .address: break
        }
        return id
    }

    mutating func traceLines(_ id: UInt32) -> TraceLines {
        guard let lines = tracer.take(id, at: shard.now, wallClockMs: shard.wallClockMs) else {
            return TraceLines(lines: [], isOver: true)
        }
        if lines.isOver { endTrace(id) }
        return lines
    }

    mutating func endTrace(_ id: UInt32) {
        shard.endTopicTrace(id)
        tracer.end(id)
        shard.reportsLifecycle = wantsLifecycle
    }

    /// Tells traces of bytes that the shard has handled.
    @inline(never)
    mutating func traceInput(_ handle: Handle, _ bytes: UnsafeRawBufferPointer) {
        let isConnect = bytes.first == PacketType.connect.firstByte
        if isConnect && tracer.followsClients {
            if let client = Self.client(bytes) {
                tracer.forget(handle)
                watch(handle, client: client)
            }
        }
        if tracer.followsAddresses, tracer.isUnknown(handle) {
            watch(handle, client: isConnect ? Self.client(bytes) : nil)
        }
        charge(
            tracer.received(
                handle, bytes, is5: shard.speaks5(handle), atMs: shard.wallClockMs))
    }

    private mutating func charge(_ looked: Tracer.Looked) {
        shard.chargeTrace(bytes: looked.bytes, told: looked.told, untold: looked.untold)
    }

    /// Tells the shard for how many lines each trace of a topic has room, so that it makes no others.
    @inline(never)
    mutating func tellTraceRoom() {
        let wallClockMs = shard.wallClockMs
        shard.setTraceRoom { tracer.room(of: $0, atMs: wallClockMs) }
    }

    private mutating func watch(_ handle: Handle, client: [UInt8]?) {
        tracer.watch(handle, reactor.peerAddress(of: handle), client: client)
    }

    /// The client identifier in a CONNECT packet.
    private static func client(_ bytes: UnsafeRawBufferPointer) -> [UInt8]? {
        guard
            case .frame(let frame)? = try? PacketDecoder.frame(
                bytes.bytes, at: 0, maximumSize: bytes.count),
            let decoded = try? DecodedConnect(frame, bytes.bytes)
        else { return nil }
        return [UInt8](bytes[decoded.connect.clientID])
    }

    /// Tells traces of output before it is sent.
    @inline(never)
    mutating func traceOutput(_ handle: Handle) {
        guard tracer.watchesOutput(of: handle) else { return }
        let wallClockMs = shard.wallClockMs
        let is5 = shard.speaks5(handle)
        let looked = shard.withOutput(of: handle) { output in
            withUnsafeTemporaryAllocation(
                of: OutputQueue.Segment.self, capacity: Self.mostSegments
            ) { segments in
                guard let base = segments.baseAddress else { return Tracer.Looked() }
                base.initialize(repeating: OutputQueue.Segment(), count: segments.count)
                let count = output.fill(base, capacity: segments.count)
                let parts = segments.prefix(count).map {
                    UnsafeRawBufferPointer(start: $0.base, count: $0.count)
                }
                return tracer.output(handle, parts, is5: is5, atMs: wallClockMs)
            }
        }
        charge(looked)
    }

    /// Notes what of the output is unsent.
    @inline(never)
    mutating func traceUnsent(_ handle: Handle) {
        guard tracer.watchesOutput(of: handle) else { return }
        tracer.unsent(handle, shard.withOutput(of: handle) { $0.count })
    }

    /// Takes the turn's events of topics, and ends traces whose viewers have gone.
    @inline(never)
    mutating func finishTraces() {
        let wallClockMs = shard.wallClockMs
        let leftOut = shard.takeTopicEvents { traces, client, text, payload in
            tracer.event(text, client: client, payload: payload, to: traces, atMs: wallClockMs)
        }
        for (id, count) in leftOut { tracer.leaveOut(count, of: id) }
        for id in tracer.abandoned(at: shard.now) { endTrace(id) }
    }
}
