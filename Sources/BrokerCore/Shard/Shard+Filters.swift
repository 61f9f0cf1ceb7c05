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
        _ handle: Handle, _ subscribe: Subscribe, _ packet: ByteRange,
        _ bytes: UnsafeRawBufferPointer
    ) {
        let suback = SharedBytes(
            count: 1 + RemainingLength.encodedSize(of: 2 + subscribe.count) + 2 + subscribe.count,
            pool: pool)
        writeSubackHeader(suback, subscribe)
        let answer = FilterRequest.Answer.suback(
            suback, codeOffset: suback.count - subscribe.count, SubscribeRefusals())
        run(FilterRequest(answer, subscribe.encodedRequests, packet), handle, packet, bytes)
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

    package mutating func receiveSubscribe5(
        _ handle: Handle, _ subscribe: Subscribe5, _ packet: ByteRange,
        _ bytes: UnsafeRawBufferPointer
    ) {
        guard takesAnswer(handle, subscribe.count) else { return }
        let (suback, offset) = answer5(.suback, subscribe.packetIdentifier, subscribe.count)
        let answer = FilterRequest.Answer.suback5(
            suback, codeOffset: offset, SubscribeRefusals(), subscribe.subscriptionIdentifier)
        run(FilterRequest(answer, subscribe.encodedRequests, packet), handle, packet, bytes)
    }

    package mutating func receiveUnsubscribe5(
        _ handle: Handle, _ unsubscribe: Unsubscribe5, _ packet: ByteRange,
        _ bytes: UnsafeRawBufferPointer
    ) {
        guard unsubscribe.count <= Self.maxUnsubscribeFilters else {
            end(handle, .unsubscribeFilters)
            return
        }
        guard takesAnswer(handle, unsubscribe.count) else { return }
        let (unsuback, offset) = answer5(
            .unsuback, unsubscribe.packetIdentifier, unsubscribe.count)
        run(
            FilterRequest(
                .unsuback5(unsuback, codeOffset: offset), unsubscribe.encodedFilters, packet),
            handle, packet, bytes)
    }

    /// False when a SUBACK or UNSUBACK with so many codes is larger than the client takes
    /// [MQTT-3.1.2-24]. It could never be answered, so the connection ends before anything is done.
    private mutating func takesAnswer(_ handle: Handle, _ codes: Int) -> Bool {
        let rest = 3 + codes
        guard
            1 + RemainingLength.encodedSize(of: rest) + rest
                <= clients5[handle].maximumPacketSize
        else {
            end(handle, .unsubscribeFilters)
            return false
        }
        return true
    }

    /// A SUBACK or UNSUBACK of 5.0 without properties, and the place of its first code.
    private func answer5(
        _ type: PacketType, _ identifier: PacketIdentifier, _ count: Int
    ) -> (packet: SharedBytes, codeOffset: Int) {
        var header: [UInt8] = []
        PacketEncoder.appendHeader(type, identifier, payloadCount: 1 + count, to: &header)
        // The length of the properties [MQTT-2.2.2-1].
        header.append(0)
        let packet = SharedBytes(count: header.count + count, pool: pool)
        header.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return }
            packet.bytes.copyMemory(from: base, byteCount: bytes.count)
        }
        return (packet, header.count)
    }

    package mutating func receiveUnsubscribe(
        _ handle: Handle, _ unsubscribe: Unsubscribe, _ packet: ByteRange,
        _ bytes: UnsafeRawBufferPointer
    ) {
        // UNSUBACK has no return code, so an oversized packet can only close the connection.
        guard unsubscribe.count <= Self.maxUnsubscribeFilters else {
            end(handle, .unsubscribeFilters)
            return
        }
        let answer = FilterRequest.Answer.unsuback(unsubscribe.packetIdentifier)
        run(FilterRequest(answer, unsubscribe.encodedFilters, packet), handle, packet, bytes)
    }

    // MARK: Slices

    /// Goes on with the connection's packet, which has been offered again.
    package mutating func continueFilters(
        _ handle: Handle, _ packet: ByteRange, _ bytes: UnsafeRawBufferPointer
    ) {
        guard let request = filterRequests.take(handle) else {
            preconditionFailure("connection \(handle.index) has no filters left")
        }
        run(request, handle, packet, bytes)
    }

    /// Carries out one slice of a request, and then sends the answer or keeps the request.
    private mutating func run(
        _ start: FilterRequest, _ handle: Handle, _ packet: ByteRange,
        _ bytes: UnsafeRawBufferPointer
    ) {
        var request = start
        var filters = request.filters(of: packet)
        let session = connections[handle].session
        let needsCommit: Bool
        switch request.answer {
        case .suback(let suback, var codeOffset, var refusals):
            needsCommit = subscribe(session, &filters, bytes, suback, &codeOffset, &refusals)
            request.answer = .suback(suback, codeOffset: codeOffset, refusals)
        case .unsuback: needsCommit = unsubscribe(session, &filters, bytes) { _ in }
        case .suback5(let suback, var codeOffset, var refusals, let identifier):
            needsCommit = subscribe5(
                session, &filters, bytes, identifier, suback, &codeOffset, &refusals)
            request.answer = .suback5(suback, codeOffset: codeOffset, refusals, identifier)
        case .unsuback5(let unsuback, var codeOffset):
            needsCommit = unsubscribe(session, &filters, bytes, unsuback, &codeOffset)
            request.answer = .unsuback5(unsuback, codeOffset: codeOffset)
        }
        if needsCommit { request.ticket = commit(.acknowledge(handle)) }
        guard filters.isEmpty else {
            request.leave(filters, of: packet)
            filterRequests.put(request, handle)
            connections.awaitTurn(handle)
            return
        }
        let ticket = start.ticket == 0 ? request.ticket : Commits.through(request.ticket)
        switch request.answer {
        case .suback(let answer, _, _), .suback5(let answer, _, _, _), .unsuback5(let answer, _):
            acknowledge(
                handle, packet: answer, ticket: ticket, requestBytes: Int(packet.count))
        case .unsuback(let identifier):
            // UNSUBACK is sent even without a matching filter [MQTT-3.10.4-5].
            acknowledge(
                handle, .unsuback, identifier, ticket: ticket,
                requestBytes: Int(packet.count))
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
            let code = grant(session, filter, SubscriptionGrant(request.qos), &refusals)
            suback.bytes.storeBytes(
                of: code.isFailure ? Suback.failure : code.rawValue, toByteOffset: codeOffset,
                as: UInt8.self)
            codeOffset += 1
            needsCommit = needsCommit || !code.isFailure && sessions[session].isPersistent
        } while context.budget.admits(.subscribe)
        return needsCommit
    }

    /// The same of MQTT 5.0, whose SUBACK has a reason for each refusal [MQTT-3.8.4-6].
    private mutating func subscribe5(
        _ session: UInt32, _ filters: inout ByteRange, _ bytes: UnsafeRawBufferPointer,
        _ identifier: SubscriptionIdentifier?, _ suback: SharedBytes, _ codeOffset: inout Int,
        _ refusals: inout SubscribeRefusals
    ) -> Bool {
        var needsCommit = false
        repeat {
            guard let request = Subscribe5.next(in: bytes.bytes, &filters) else { break }
            let code: ReasonCode
            switch request.filter.filter {
            case .success(let filter):
                let options = request.options
                code = grant(
                    session, bytes[filter.range],
                    SubscriptionGrant(
                        options.qos, noLocal: options.noLocal,
                        retainAsPublished: options.retainAsPublished, identifier: identifier),
                    retained: options.retainHandling, &refusals)
            case .failure(let fault):
                code = fault.reasonCode
                context.budget.spend(
                    WorkBudget.filter(bytes[request.filter.text], isGranted: false))
            }
            suback.bytes.storeBytes(of: code.rawValue, toByteOffset: codeOffset, as: UInt8.self)
            codeOffset += 1
            needsCommit = needsCommit || !code.isFailure && sessions[session].isPersistent
        } while context.budget.admits(.subscribe)
        return needsCommit
    }

    /// Adds one subscription and records it; returns the code of its SUBACK.
    private mutating func grant(
        _ session: UInt32, _ filter: UnsafeRawBufferPointer, _ grant: SubscriptionGrant,
        retained: SubscriptionOptions.RetainHandling = .atEverySubscribe,
        _ refusals: inout SubscribeRefusals
    ) -> ReasonCode {
        let ruleSteps = refusals.ruleSteps
        let code = addSubscription(session, filter, grant, retained: retained, &refusals)
        if !code.isFailure, sessions[session].isPersistent {
            commits.records.subscription(
                sessions[session].number, filter: filter, grant: grant.rawValue)
        }
        context.budget.spend(
            WorkBudget.filter(filter, isGranted: !code.isFailure)
                + WorkBudget.filterRuleStep * (refusals.ruleSteps - ruleSteps))
        return code
    }

    /// Removes subscriptions until the connection's share of the turn is spent; true when some are to
    /// be removed from the store. UNSUBACK of 5.0 has a code for each filter [MQTT-3.11.3-2].
    private mutating func unsubscribe(
        _ session: UInt32, _ filters: inout ByteRange, _ bytes: UnsafeRawBufferPointer,
        _ unsuback: SharedBytes, _ codeOffset: inout Int
    ) -> Bool {
        unsubscribe(session, &filters, bytes) { code in
            unsuback.bytes.storeBytes(of: code.rawValue, toByteOffset: codeOffset, as: UInt8.self)
            codeOffset += 1
        }
    }

    private mutating func unsubscribe(
        _ session: UInt32, _ filters: inout ByteRange, _ bytes: UnsafeRawBufferPointer,
        _ answer: (ReasonCode) -> Void
    ) -> Bool {
        let bytesBefore = sessions[session].subscriptions.byteCount
        var needsCommit = false
        var groups: Set<UInt32> = []
        repeat {
            guard let filter = Unsubscribe5.next(in: bytes.bytes, &filters) else { break }
            let text = bytes[filter.text]
            context.budget.spend(WorkBudget.filter(text, isGranted: true))
            if case .failure(let fault) = filter.filter {
                answer(fault.reasonCode)
                continue
            }
            let removed = subscriptions.remove(
                session, &sessions[session].subscriptions, filter: text)
            answer(removed == .none ? .noSubscriptionExisted : .success)
            switch removed {
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
