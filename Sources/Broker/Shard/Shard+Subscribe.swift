import MQTTCodec
import MQTTCore
import Store
import Structures

extension Shard {
    /// Topics that one turn may visit for retained messages, so that `#` over a million stalls nobody.
    private static var retainedStepsPerTurn: Int { 2_048 }
    /// Messages that may wait in a session before its retained messages pause.
    private static var retainedBacklog: UInt32 { 256 }

    mutating func receiveSubscribe(
        _ handle: Handle, _ subscribe: Subscribe, _ bytes: UnsafeRawBufferPointer
    ) {
        let session = connections[handle.index].session
        let isPersistent = sessions[session].isPersistent
        let suback = SharedBytes(
            count: 1 + RemainingLength.encodedSize(of: 2 + subscribe.count) + 2 + subscribe.count,
            pool: pool)
        var offset = suback.count - subscribe.count
        writeSubackHeader(suback, subscribe)
        var needsCommit = false
        var requests = subscribe
        // As if each filter had come in a packet of its own, answered together [MQTT-3.8.4-4].
        while let request = requests.next(in: bytes.bytes) {
            let filter = bytes[request.filter.range]
            var code = Suback.failure
            if isWithinLevels(filter) {
                _ = trie.subscribe(
                    session, &sessions[session].subscriptions, filter: filter, qos: request.qos)
                if isPersistent {
                    writes.subscription(
                        sessions[session].number, filter: filter, qos: request.qos.rawValue)
                    needsCommit = true
                }
                code = request.qos.rawValue
                startRetained(session, filter, request.qos)
            }
            suback.bytes.storeBytes(of: code, toByteOffset: offset, as: UInt8.self)
            offset += 1
        }
        answer(handle, suback, needsCommit: needsCommit)
    }

    mutating func receiveUnsubscribe(
        _ handle: Handle, _ unsubscribe: Unsubscribe, _ bytes: UnsafeRawBufferPointer
    ) {
        let session = connections[handle.index].session
        var needsCommit = false
        var filters = unsubscribe
        while let filter = filters.next(in: bytes.bytes) {
            let text = bytes[filter.range]
            let wasRemoved = trie.unsubscribe(
                session, &sessions[session].subscriptions, filter: text)
            if wasRemoved, sessions[session].isPersistent {
                writes.subscriptionRemoved(sessions[session].number, filter: text)
                needsCommit = true
            }
        }
        // Answered also when nothing was deleted [MQTT-3.10.4-5].
        acknowledge(
            handle, .unsuback, unsubscribe.packetIdentifier, needsCommit: needsCommit,
            publishBytes: 0)
    }

    private func writeSubackHeader(_ suback: SharedBytes, _ subscribe: Subscribe) {
        var header: [UInt8] = []
        PacketEncoder.appendHeader(
            .suback, subscribe.packetIdentifier, payloadCount: subscribe.count, to: &header)
        header.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return }
            suback.bytes.copyMemory(from: base, byteCount: bytes.count)
        }
    }

    private mutating func answer(_ handle: Handle, _ packet: SharedBytes, needsCommit: Bool) {
        var ticket: UInt64 = 0
        if needsCommit {
            ticket = writes.commit()
            commits.add(ticket, .acknowledge(handle))
        }
        connections[handle.index].acknowledgements.append(
            packet: packet, ticket: ticket, pool: pool)
        if !needsCommit { releaseAcknowledgements(handle) }
    }

    // MARK: Retained messages for a new subscription

    /// The subscription is in place before the first retained message is read, so nothing that is
    /// published meanwhile is missed.
    private mutating func startRetained(
        _ session: UInt32, _ filter: UnsafeRawBufferPointer, _ qos: QoS
    ) {
        guard retained.count > 0 else { return }
        retainedJobs.append(
            RetainedJob(
                session: handle(ofSession: session), qos: qos, cursor: retained.cursor(filter)))
    }

    /// Whether a further turn would find retained messages to send without waiting for anybody.
    var hasPendingSlices: Bool { retainedJobs.contains { canTakeRetained($0.session) } }

    /// A slice of what is due; each job in turn.
    mutating func runRetainedJobs() {
        guard !retainedJobs.isEmpty else { return }
        var jobs: [RetainedJob] = []
        swap(&jobs, &retainedJobs)
        var steps = Self.retainedStepsPerTurn
        for var job in jobs {
            if runRetained(&job, &steps) {
                retained.end(job.cursor)
            } else {
                retainedJobs.append(job)
            }
        }
    }

    /// True when the job is over.
    private mutating func runRetained(_ job: inout RetainedJob, _ steps: inout Int) -> Bool {
        while canTakeRetained(job.session) {
            switch retained.next(&job.cursor, steps: &steps) {
            case .finished: return true
            case .paused: return false
            case .message(let message): deliverRetained(message, job)
            }
        }
        return !isCurrent(session: job.session) || sessions[job.session.index].connection == nil
    }

    private func canTakeRetained(_ session: Handle) -> Bool {
        guard isCurrent(session: session), let target = sessions[session.index].connection else {
            return false
        }
        return connections[target.index].output.count < settings.outputBytes
            && sessions[session.index].outbound.waiting < Self.retainedBacklog
    }

    /// RETAIN 1, because a new subscription asked for it [MQTT-3.3.1-8]; at the lower QoS.
    private mutating func deliverRetained(_ message: Message, _ job: RetainedJob) {
        let session = job.session.index
        let qos = min(message.qos, job.qos)
        guard !message.isExpired(atMs: wallClockMs) else { return }
        var number: UInt64 = 0
        var ticket: UInt64 = 0
        let isStored = qos != .atMostOnce && sessions[session].isPersistent
        if isStored {
            number = record(message)
            ticket = writes.lastTicket + 1
        }
        var counts = PublishCounts()
        deliver(
            message, number, to: session, qos: qos, retain: true, ticket: ticket, &counts)
        if isStored { commitUnwatched() }
    }
}
