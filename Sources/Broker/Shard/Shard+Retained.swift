import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Retained messages on their way to one session's new subscriptions.
struct RetainedJob {
    struct Walk {
        var filter: [UInt8]
        var cursor: RetainedCursor
        var qos: QoS
    }

    /// The subscription being served.
    var walk: Walk?
    /// Filters that wait, in order, each once: whoever subscribes again before its turn has come is
    /// served by the walk that is still to begin.
    private var filters: [[UInt8]] = []
    /// The filter whose turn is next.
    private var first = 0
    private var qosOfFilter: [[UInt8]: QoS] = [:]

    mutating func add(_ filter: [UInt8], _ qos: QoS) {
        if qosOfFilter.updateValue(qos, forKey: filter) == nil { filters.append(filter) }
    }

    /// What was being served is served again, from its beginning.
    mutating func restart(_ filter: [UInt8], _ qos: QoS) {
        guard qosOfFilter[filter] == nil else { return }
        qosOfFilter[filter] = qos
        filters.insert(filter, at: first)
    }

    /// The filter's subscription is gone, and with it what is due to it. Its place in the order goes
    /// with the next ones, so that removing many costs no more than adding them did.
    mutating func remove(_ filter: [UInt8]) {
        guard qosOfFilter.removeValue(forKey: filter) != nil else { return }
        guard filters.count - first > 2 * qosOfFilter.count + 16 else { return }
        var placed: Set<[UInt8]> = []
        filters = filters[first...].filter { qosOfFilter[$0] != nil && placed.insert($0).inserted }
        first = 0
    }

    mutating func next() -> (filter: [UInt8], qos: QoS)? {
        while first < filters.count {
            let filter = filters[first]
            first += 1
            if first == filters.count {
                filters.removeAll()
                first = 0
            }
            if let qos = qosOfFilter.removeValue(forKey: filter) { return (filter, qos) }
        }
        return nil
    }
}

/// What a message with RETAIN does to the retained message of its topic.
enum Retaining {
    case keep
    /// It has no payload [MQTT-3.3.1-10], or is not kept itself and makes the former one outdated.
    case remove
    /// There is no room for it, and none to remove.
    case nothing
}

extension Shard {
    // MARK: Keeping

    /// What becomes of a message with RETAIN: beyond `limits.max_retained` and `limits.retained_bytes` it
    /// is not kept, which is counted and reported. A former one then goes all the same [MQTT-3.3.1-7].
    mutating func retaining(_ message: Message) -> Retaining {
        guard message.payload.count > 0 else { return .remove }
        let bytes = retainedBytes + message.count
        // No topic counts more than its bytes allow.
        guard
            bytes > settings.retainedBytes
                || retainedWeight + message.topic.count / 8 + 1 > settings.maxRetained
        else { return .keep }
        let former = retained.byteCount(of: message.topic)
        guard let limit = limit(of: message, replacing: former) else { return .keep }
        counters.limits.add(limit)
        note(.notRetained(topic: [UInt8](message.topic), limit))
        return former == nil ? .nothing : .remove
    }

    /// The limit that a retained message meets; of one that takes another's place the difference counts.
    private func limit(of message: Message, replacing former: Int?) -> Limit? {
        let growth = message.count - (former ?? 0)
        if growth > 0, retainedBytes + growth > settings.retainedBytes { return .retainedBytes }
        guard former == nil else { return nil }
        let weight = retainedWeight + TopicLevels.weight(of: message.topic)
        return weight > settings.maxRetained ? .maxRetained : nil
    }

    /// Keeps, replaces or removes the topic's retained message, in memory and in the store, where
    /// `number` names its content.
    mutating func retain(_ message: Message, _ number: UInt64, _ retaining: Retaining) {
        switch retaining {
        case .keep:
            retained.update(message)
            writes.retained(message: number)
        case .remove:
            retained.remove(message.topic)
            writes.retainedRemoved(topic: message.topic)
        case .nothing: return
        }
    }

    // MARK: Sending

    /// Topics that one turn may visit, so that `#` over a million stalls nobody.
    private static var retainedStepsPerTurn: Int { 2_048 }
    /// Messages that may wait in a session before its retained messages pause.
    private static var retainedBacklog: UInt32 { 256 }

    /// The subscription is in place before the first retained message is read, so nothing that is
    /// published meanwhile is missed.
    mutating func startRetained(
        _ session: UInt32, _ filter: UnsafeRawBufferPointer, _ qos: QoS
    ) {
        guard retained.count > 0 else { return }
        if retainedJobs[session] == nil { retainedTurns.append(session) }
        retainedJobs[session, default: RetainedJob()].add([UInt8](filter), qos)
    }

    /// The session's connection is gone, and with it what it asked for.
    mutating func cancelRetained(_ session: UInt32) {
        guard let job = retainedJobs.removeValue(forKey: session) else { return }
        if let walk = job.walk { retained.end(walk.cursor) }
        retainedTurns.removeAll { $0 == session }
        sessions[session].hasStalledRetained = false
    }

    /// The client is away; when it comes back to its session, it still gets what it asked for, and some
    /// of it perhaps again.
    mutating func suspendRetained(_ session: UInt32) {
        guard var job = retainedJobs.removeValue(forKey: session) else { return }
        if let walk = job.walk.take() {
            retained.end(walk.cursor)
            job.restart(walk.filter, walk.qos)
        }
        retainedTurns.removeAll { $0 == session }
        sessions[session].hasStalledRetained = true
        retainedJobs[session] = job
    }

    /// No retained message follows an UNSUBSCRIBE [MQTT-3.10.4-2].
    mutating func cancelRetained(_ session: UInt32, _ filter: UnsafeRawBufferPointer) {
        guard var job = retainedJobs.removeValue(forKey: session) else { return }
        let filter = [UInt8](filter)
        job.remove(filter)
        if let walk = job.walk, walk.filter == filter {
            retained.end(walk.cursor)
            job.walk = nil
        }
        retainedJobs[session] = job
    }

    /// The session has room again for what it asked for.
    mutating func resumeRetained(_ session: UInt32) {
        guard sessions[session].hasStalledRetained, canTakeRetained(session) else { return }
        sessions[session].hasStalledRetained = false
        retainedTurns.append(session)
    }

    /// A slice of what is due; who was served goes behind those who were not.
    mutating func runRetainedJobs() {
        var steps = Self.retainedStepsPerTurn
        var served = 0
        let waiting = retainedTurns.count
        while served < waiting, steps > 0 {
            let session = retainedTurns[served]
            served += 1
            guard var job = retainedJobs.removeValue(forKey: session) else {
                preconditionFailure("session \(session) waits for retained messages without a job")
            }
            switch run(&job, session, &steps) {
            case .finished: continue
            case .paused: retainedTurns.append(session)
            case .stalled: sessions[session].hasStalledRetained = true
            }
            retainedJobs[session] = job
        }
        retainedTurns.removeFirst(served)
    }

    private enum Slice {
        case finished
        /// The turn's steps are used up.
        case paused
        /// The client takes no more at present.
        case stalled
    }

    private mutating func run(
        _ job: inout RetainedJob, _ session: UInt32, _ steps: inout Int
    ) -> Slice {
        while true {
            guard canTakeRetained(session) else { return .stalled }
            // Taken out, so that the walk has one owner and is not copied.
            guard var walk = job.walk.take() else {
                guard let (filter, qos) = job.next() else { return .finished }
                let cursor = filter.withUnsafeBytes { retained.cursor($0) }
                job.walk = RetainedJob.Walk(filter: filter, cursor: cursor, qos: qos)
                continue
            }
            switch retained.next(&walk.cursor, steps: &steps) {
            case .message(let message):
                deliverRetained(message, session, walk.qos)
                job.walk = walk
            case .paused:
                job.walk = walk
                return .paused
            case .finished:
                retained.end(walk.cursor)
            }
        }
    }

    private func canTakeRetained(_ session: UInt32) -> Bool {
        guard let target = sessions[session].connection,
            // What a persistent session gets is stored for it.
            !isStoreBehind || !sessions[session].isPersistent
        else { return false }
        return connections[target.index].output.count < settings.outputBytes
            && sessions[session].outbound.waiting < Self.retainedBacklog
    }

    /// RETAIN 1, because a new subscription asked for it [MQTT-3.3.1-8]; at the lower QoS.
    private mutating func deliverRetained(_ message: Message, _ session: UInt32, _ asked: QoS) {
        let qos = min(message.qos, asked)
        guard mayBeSent(message.topic, to: session), !message.isExpired(atMs: wallClockMs),
            !sendRetainedSystemMessage(message, to: session)
        else { return }
        var number: UInt64 = 0
        // What it was published with may not be stored yet.
        var ticket = commits.areCommitted(through: retainedTicket) ? 0 : retainedTicket
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
