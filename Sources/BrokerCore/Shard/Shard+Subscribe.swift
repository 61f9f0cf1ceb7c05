import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// SUBSCRIBE, UNSUBSCRIBE, and the retained messages for new subscriptions.
extension Shard {
    /// Most filters of one UNSUBSCRIBE; `limits.max_packet` would allow hundreds of thousands.
    public static var maxUnsubscribeFilters: Int { 10_000 }

    mutating func receiveSubscribe(
        _ handle: Handle, _ subscribe: Subscribe, _ frame: PacketDecoder.Frame,
        _ bytes: UnsafeRawBufferPointer
    ) {
        let session = connections[handle].session
        let suback = SharedBytes(
            count: 1 + RemainingLength.encodedSize(of: 2 + subscribe.count) + 2 + subscribe.count,
            pool: pool)
        var offset = suback.count - subscribe.count
        writeSubackHeader(suback, subscribe)
        var needsCommit = false
        var requests = subscribe
        var refusals = SubscribeRefusals()
        // Each filter is handled as if it came alone; one SUBACK answers all [MQTT-3.8.4-4].
        while let request = requests.next(in: bytes.bytes) {
            let filter = bytes[request.filter.range]
            var code = Suback.failure
            if addSubscription(session, filter, request.qos, &refusals) {
                if sessions[session].isPersistent {
                    commits.records.subscription(
                        sessions[session].number, filter: filter, qos: request.qos.rawValue)
                    needsCommit = true
                }
                code = request.qos.rawValue
            }
            suback.bytes.storeBytes(of: code, toByteOffset: offset, as: UInt8.self)
            offset += 1
        }
        acknowledge(
            handle, packet: suback, needsCommit: needsCommit,
            requestBytes: Int(frame.packet.count))
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

    mutating func receiveUnsubscribe(
        _ handle: Handle, _ unsubscribe: Unsubscribe, _ frame: PacketDecoder.Frame,
        _ bytes: UnsafeRawBufferPointer
    ) {
        // UNSUBACK has no return code, so an oversized packet can only close the connection.
        guard unsubscribe.count <= Self.maxUnsubscribeFilters else {
            end(handle, .unsubscribeFilters)
            return
        }
        let session = connections[handle].session
        let bytesBefore = sessions[session].subscriptions.byteCount
        var needsCommit = false
        var groups: Set<UInt32> = []
        var filters = unsubscribe
        while let filter = filters.next(in: bytes.bytes) {
            let text = bytes[filter.range]
            switch subscriptions.remove(
                session, &sessions[session].subscriptions, filter: text)
            {
            case .none: continue
            case .plain:
                if let walk = walks.cancel(session, text) { retained.end(walk.cursor) }
            case .shared(let group): groups.insert(group)
            }
            if sessions[session].isPersistent {
                commits.records.subscriptionRemoved(sessions[session].number, filter: text)
                needsCommit = true
            }
        }
        sessions.countSubscriptions(of: session, before: bytesBefore)
        // Sent messages stay with the client [MQTT-3.10.4-3]; waiting ones go to other members.
        if !groups.isEmpty {
            handOver(session, groups, unacknowledged: false)
            // Messages that only the store holds are handed over when they are loaded.
            if commits.isDurable { pump(session) }
        }
        // UNSUBACK is sent even without a matching filter [MQTT-3.10.4-5].
        acknowledge(
            handle, .unsuback, unsubscribe.packetIdentifier, needsCommit: needsCommit,
            requestBytes: Int(frame.packet.count))
    }

    /// Adds one subscription; false when the filter is rejected.
    private mutating func addSubscription(
        _ session: UInt32, _ filter: UnsafeRawBufferPointer, _ qos: QoS,
        _ refusals: inout SubscribeRefusals
    ) -> Bool {
        guard refusals.admitsNext() else {
            return refuseFilter(session, .subscribeFilters, &refusals)
        }
        guard context.isWithinLevels(filter) else {
            return refuseFilter(session, .maxTopicLevels, &refusals)
        }
        let isShared = SharedSubscriptions.isShared(filter)
        let plainFilter = isShared ? SharedSubscriptions.filter(in: filter) : filter
        guard let plainFilter else { return refuseFilter(session, .sharedFilter, &refusals) }
        guard maySubscribe(session, plainFilter, &refusals) else { return false }
        prepareSystemTopics(for: plainFilter)
        let bytesBefore = sessions[session].subscriptions.byteCount
        let subscribed = subscriptions.add(
            session, &sessions[session].subscriptions, filter: filter, qos: qos, isOnline: true)
        if subscribed == .added {
            if let limit = limitExceeded(bySubscriptionsOf: session, before: bytesBefore) {
                _ = subscriptions.remove(session, &sessions[session].subscriptions, filter: filter)
                return refuseFilter(session, limit, &refusals)
            }
            sessions.countSubscriptions(of: session, before: bytesBefore)
        }
        // A shared subscription gets none, as they would always go to the latest member. Walks
        // begin after the subscription is in place, so no message published in between is missed.
        if !isShared, !retained.isEmpty { walks.add(session, filter, qos) }
        return true
    }

    private mutating func refuseFilter(
        _ session: UInt32, _ limit: Limit, _ refusals: inout SubscribeRefusals
    ) -> Bool {
        context.counters.limits.add(limit)
        if refusals.isReported(.atLimit) {
            context.notices.appendBounded(
                .subscriptionRefused(
                    clientIdentifier: sessions.identifier(of: session), limit))
        }
        return false
    }

    // MARK: Retained messages

    /// Drops the retained messages due to a session that has ended.
    mutating func cancelRetained(_ session: UInt32) {
        if let walk = walks.cancel(session) { retained.end(walk.cursor) }
    }

    /// Resumes retained messages for a session that has room again.
    @inline(__always)
    mutating func resumeRetained(_ session: UInt32) {
        if walks.isStalled(session) { resumeStalled(session) }
    }

    @inline(never)
    private mutating func resumeStalled(_ session: UInt32) {
        if canTakeRetained(session) { walks.resume(session) }
    }

    private func canTakeRetained(_ session: UInt32) -> Bool {
        guard let target = sessions[session].connection,
            // A persistent session's copies must be stored.
            !commits.isBacklogFull || !sessions[session].isPersistent
        else { return false }
        return connections[target].outlet.count < context.limits.outputBytes
            && sessions[session].outbound.waiting < RetainedWalks.mostWaiting
    }

    /// Sends one slice of retained messages to new subscriptions.
    mutating func runRetainedWalks() {
        guard walks.hasWork else { return }
        var steps = RetainedWalks.stepsPerTurn
        var served = 0
        let waiting = walks.turnCount
        while served < waiting, steps > 0 {
            let session = walks.session(inTurn: served)
            served += 1
            var job = walks.takeJob(of: session)
            let slice = run(&job, session, &steps)
            walks.endSlice(session, job, slice)
        }
        walks.endTurn(served: served)
    }

    private mutating func run(
        _ job: inout RetainedJob, _ session: UInt32, _ steps: inout Int
    ) -> RetainedWalks.Slice {
        while true {
            guard canTakeRetained(session) else { return .stalled }
            guard var walk = job.takeWalk() else {
                guard let (filter, qos) = job.nextRequest() else { return .finished }
                job.putBack(
                    RetainedJob.Walk(filter: filter, cursor: retained.cursor(filter), qos: qos))
                continue
            }
            switch retained.next(&walk.cursor, steps: &steps) {
            case .message(let message):
                deliverRetained(message, session, walk.qos)
                job.putBack(walk)
            case .paused:
                job.putBack(walk)
                return .paused
            case .finished:
                retained.end(walk.cursor)
            }
        }
    }

    /// Sends a retained message with RETAIN 1 [MQTT-3.3.1-8], at the lower QoS.
    private mutating func deliverRetained(_ message: Message, _ session: UInt32, _ asked: QoS) {
        guard rights.mayReceive(message.topic, sessions[session]) else {
            rights.refuseDelivery(.withheld, sessions[session], message.topic, &context)
            return
        }
        guard !message.isExpired(atMs: context.wallClockMs) else { return }
        if SystemTopic.isReserved(message.topic) {
            sendSystemMessage(message, to: session, retain: true)
            return
        }
        let qos = min(message.qos, asked)
        let isStored = qos != .atMostOnce && sessions[session].isPersistent
        // The commit of its publication may be incomplete.
        var delivery = RoutedMessage(
            message,
            ticket: isStored ? commits.nextTicket : commits.uncommittedRetainedTicket,
            retain: true)
        var counts = PublishCounts()
        deliver(&delivery, to: session, qos: qos, &counts)
        if isStored { commit() }
    }
}
