import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

extension Shard {
    mutating func receiveSubscribe(
        _ handle: Handle, _ subscribe: Subscribe, _ frame: PacketDecoder.Frame,
        _ bytes: UnsafeRawBufferPointer
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
        var refusals = SubscribeRefusals()
        // As if each filter had come in a packet of its own, answered together [MQTT-3.8.4-4].
        while let request = requests.next(in: bytes.bytes) {
            let filter = bytes[request.filter.range]
            var code = Suback.failure
            if addSubscription(session, filter, request.qos, &refusals) {
                if isPersistent {
                    writes.subscription(
                        sessions[session].number, filter: filter, qos: request.qos.rawValue)
                    needsCommit = true
                }
                code = request.qos.rawValue
            }
            suback.bytes.storeBytes(of: code, toByteOffset: offset, as: UInt8.self)
            offset += 1
        }
        answer(
            handle, suback, needsCommit: needsCommit, requestBytes: Int(frame.packet.count))
    }

    /// Filters of one UNSUBSCRIBE: a packet of `limits.max_packet` holds hundreds of thousands.
    static var maxUnsubscribeFilters: Int { 10_000 }

    mutating func receiveUnsubscribe(
        _ handle: Handle, _ unsubscribe: Unsubscribe, _ frame: PacketDecoder.Frame,
        _ bytes: UnsafeRawBufferPointer
    ) {
        // UNSUBACK has no codes: a client that is not told would rely on filters that stay.
        guard unsubscribe.count <= Self.maxUnsubscribeFilters else {
            doom(handle, .unsubscribeFilters)
            return
        }
        let session = connections[handle.index].session
        var needsCommit = false
        var groups: Set<UInt32> = []
        var filters = unsubscribe
        while let filter = filters.next(in: bytes.bytes) {
            let text = bytes[filter.range]
            let wasRemoved = removeSubscription(session, text, &groups)
            if wasRemoved, sessions[session].isPersistent {
                writes.subscriptionRemoved(sessions[session].number, filter: text)
                needsCommit = true
            }
        }
        // What it was sent stays with it [MQTT-3.10.4-3]; what waits is for the others.
        if !groups.isEmpty {
            handOver(session, groups, unacknowledged: false)
            // So is what only the store has, which leaves when it is loaded.
            if isDurable { pump(session) }
        }
        // Answered also when nothing was deleted [MQTT-3.10.4-5].
        acknowledge(
            handle, .unsuback, unsubscribe.packetIdentifier, needsCommit: needsCommit,
            requestBytes: Int(frame.packet.count))
    }

    /// False when the filter is refused.
    private mutating func addSubscription(
        _ session: UInt32, _ filter: UnsafeRawBufferPointer, _ qos: QoS,
        _ refusals: inout SubscribeRefusals
    ) -> Bool {
        guard refusals.admitsNext() else {
            refuse(session, .subscribeFilters, &refusals)
            return false
        }
        guard isWithinLevels(filter) else {
            refuse(session, .maxTopicLevels, &refusals)
            return false
        }
        let isShared = SharedSubscriptions.isShared(filter)
        guard !isShared || SharedSubscriptions.filter(in: filter) != nil else {
            refuse(session, .sharedFilter, &refusals)
            return false
        }
        guard maySubscribe(session, filter, &refusals) else { return false }
        prepareSystemTopics(for: filter)
        let subscribed =
            isShared
            ? shared.subscribe(
                session, &sessions[session].shared, text: filter, qos: qos, isOnline: true)
            : trie.subscribe(session, &sessions[session].subscriptions, filter: filter, qos: qos)
        if subscribed == .added {
            sessions[session].subscriptionWeight += Self.weight(of: filter)
            guard sessions[session].subscriptionWeight <= settings.maxSubscriptions else {
                var groups: Set<UInt32> = []
                _ = removeSubscription(session, filter, &groups)
                refuse(session, .maxSubscriptions, &refusals)
                return false
            }
        }
        // Shared ones get none: they would go to whoever subscribes last.
        if !isShared { startRetained(session, filter, qos) }
        return true
    }

    /// Removes the subscription of exactly this filter [MQTT-3.10.4-1]; false when there is none.
    /// A shared subscription's group joins `groups`; its messages are to be handed over.
    private mutating func removeSubscription(
        _ session: UInt32, _ filter: UnsafeRawBufferPointer, _ groups: inout Set<UInt32>
    ) -> Bool {
        guard SharedSubscriptions.isShared(filter) else {
            let wasRemoved = trie.unsubscribe(
                session, &sessions[session].subscriptions, filter: filter)
            if wasRemoved {
                sessions[session].subscriptionWeight -= Self.weight(of: filter)
                cancelRetained(session, filter)
            }
            return wasRemoved
        }
        guard let group = shared.unsubscribe(&sessions[session].shared, text: filter) else {
            return false
        }
        sessions[session].subscriptionWeight -= Self.weight(of: filter)
        groups.insert(group)
        return true
    }

    /// What a filter counts against `limits.max_subscriptions`: matching walks its levels.
    static func weight(of filter: UnsafeRawBufferPointer) -> UInt32 {
        UInt32(TopicLevels.weight(of: filter))
    }

    private mutating func refuse(
        _ session: UInt32, _ limit: Limit, _ refusals: inout SubscribeRefusals
    ) {
        counters.limits.add(limit)
        guard refusals.isReported(.atLimit) else { return }
        note(
            .subscriptionRefused(
                clientIdentifier: sessions[session].clientIdentifier.array, limit))
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

    /// SUBACK leaves now, or behind what must leave before it. Unread ones count as output; what waits
    /// for the store stops the reading, as PUBLISHes do.
    private mutating func answer(
        _ handle: Handle, _ packet: SharedBytes, needsCommit: Bool, requestBytes: Int
    ) {
        let ticket = needsCommit ? commit(.acknowledge(handle)) : 0
        connections[handle.index].acknowledgements.append(
            packet: packet, ticket: ticket, requestBytes: requestBytes, pool: pool)
        if !needsCommit { releaseAcknowledgements(handle) }
        if !connections[handle.index].acknowledgements.isEmpty {
            pauseIfNeeded(handle, isPublisher: false)
        }
    }
}
