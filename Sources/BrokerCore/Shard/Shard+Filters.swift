import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// SUBSCRIBE and UNSUBSCRIBE, in slices.
///
/// A packet may hold so many filters that all at once would delay the other clients. A slice ends
/// with the connection's share of the turn; the packet stays in the connection's input and is
/// offered again in the next turn, before those behind it. Each slice is a group of records of its
/// own. SUBACK and UNSUBACK follow the last one, and wait for the commits of all: a client whose
/// connection or broker ends between two slices has no answer, and asks again [MQTT-3.8.4-4].
extension Shard {
    /// Most filters of one UNSUBSCRIBE; `limits.max_packet` would allow hundreds of thousands.
    public static var maxUnsubscribeFilters: Int { 10_000 }

    package mutating func receiveSubscribe(
        _ handle: Handle, _ subscribe: Subscribe, _ frame: PacketDecoder.Frame,
        _ bytes: UnsafeRawBufferPointer
    ) {
        let suback = SharedBytes(
            count: 1 + RemainingLength.encodedSize(of: 2 + subscribe.count) + 2 + subscribe.count,
            pool: pool)
        writeSubackHeader(suback, subscribe)
        let answer = FilterRequest.Answer.suback(
            suback, codeOffset: suback.count - subscribe.count, SubscribeRefusals())
        run(FilterRequest(answer, subscribe.encodedRequests, frame), handle, frame, bytes)
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

    package mutating func receiveUnsubscribe(
        _ handle: Handle, _ unsubscribe: Unsubscribe, _ frame: PacketDecoder.Frame,
        _ bytes: UnsafeRawBufferPointer
    ) {
        // UNSUBACK has no return code, so an oversized packet can only close the connection.
        guard unsubscribe.count <= Self.maxUnsubscribeFilters else {
            end(handle, .unsubscribeFilters)
            return
        }
        let answer = FilterRequest.Answer.unsuback(unsubscribe.packetIdentifier)
        run(FilterRequest(answer, unsubscribe.encodedFilters, frame), handle, frame, bytes)
    }

    // MARK: Slices

    /// Goes on with the connection's packet, which has been offered again.
    package mutating func continueFilters(
        _ handle: Handle, _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer
    ) {
        guard let request = filterRequests.take(handle) else {
            preconditionFailure("connection \(handle.index) has no filters left")
        }
        run(request, handle, frame, bytes)
    }

    /// Carries out one slice of a request, and then sends the answer or keeps the request.
    private mutating func run(
        _ start: FilterRequest, _ handle: Handle, _ frame: PacketDecoder.Frame,
        _ bytes: UnsafeRawBufferPointer
    ) {
        var request = start
        var filters = request.filters(of: frame)
        let session = connections[handle].session
        let needsCommit: Bool
        switch request.answer {
        case .suback(let suback, var codeOffset, var refusals):
            needsCommit = subscribe(session, &filters, bytes, suback, &codeOffset, &refusals)
            request.answer = .suback(suback, codeOffset: codeOffset, refusals)
        case .unsuback: needsCommit = unsubscribe(session, &filters, bytes)
        }
        if needsCommit { request.ticket = commit(.acknowledge(handle)) }
        guard filters.isEmpty else {
            request.leave(filters, of: frame)
            filterRequests.put(request, handle)
            connections.awaitTurn(handle)
            return
        }
        let ticket = start.ticket == 0 ? request.ticket : Commits.through(request.ticket)
        switch request.answer {
        case .suback(let suback, _, _):
            acknowledge(
                handle, packet: suback, ticket: ticket, requestBytes: Int(frame.packet.count))
        case .unsuback(let identifier):
            // UNSUBACK is sent even without a matching filter [MQTT-3.10.4-5].
            acknowledge(
                handle, .unsuback, identifier, ticket: ticket,
                requestBytes: Int(frame.packet.count))
        }
        // The commits of all slices may be complete, when the last one needed none.
        if start.ticket != 0 { releaseAcknowledgements(handle) }
    }

    /// Adds subscriptions until the connection's share of the turn is spent; true when some are to
    /// be stored. Each filter is handled as if it came alone; one SUBACK answers all
    /// [MQTT-3.8.4-4].
    private mutating func subscribe(
        _ session: UInt32, _ filters: inout ByteRange, _ bytes: UnsafeRawBufferPointer,
        _ suback: SharedBytes, _ codeOffset: inout Int, _ refusals: inout SubscribeRefusals
    ) -> Bool {
        var needsCommit = false
        repeat {
            guard let request = Subscribe.next(in: bytes.bytes, &filters) else { break }
            let filter = bytes[request.filter.range]
            var code = Suback.failure
            let ruleSteps = refusals.ruleSteps
            if addSubscription(session, filter, request.qos, &refusals) {
                if sessions[session].isPersistent {
                    commits.records.subscription(
                        sessions[session].number, filter: filter, qos: request.qos.rawValue)
                    needsCommit = true
                }
                code = request.qos.rawValue
            }
            suback.bytes.storeBytes(of: code, toByteOffset: codeOffset, as: UInt8.self)
            codeOffset += 1
            context.budget.spend(
                WorkBudget.filter(filter, isGranted: code != Suback.failure)
                    + WorkBudget.filterRuleStep * (refusals.ruleSteps - ruleSteps))
        } while context.budget.admits(.subscribe)
        return needsCommit
    }

    /// Removes subscriptions until the connection's share of the turn is spent; true when some are to
    /// be removed from the store.
    private mutating func unsubscribe(
        _ session: UInt32, _ filters: inout ByteRange, _ bytes: UnsafeRawBufferPointer
    ) -> Bool {
        let bytesBefore = sessions[session].subscriptions.byteCount
        var needsCommit = false
        var groups: Set<UInt32> = []
        repeat {
            guard let filter = Unsubscribe.next(in: bytes.bytes, &filters) else { break }
            let text = bytes[filter.range]
            context.budget.spend(WorkBudget.filter(text, isGranted: true))
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
        } while context.budget.admits(.unsubscribe)
        sessions.countSubscriptions(of: session, before: bytesBefore)
        // Sent messages stay with the client [MQTT-3.10.4-3]; waiting ones go to other members.
        if !groups.isEmpty {
            handOver(session, groups, unacknowledged: false)
            // Messages that only the store holds are handed over when they are loaded.
            if commits.isDurable { pump(session) }
        }
        return needsCommit
    }
}
