import Addresses
import BrokerAPI
import BrokerCore
import MQTTCodec
import MQTTCore
import Structures

/// Lists for the admin plane: clients, subscriptions, retained messages. Each is made in slices.
extension Shard {
    /// Sessions visited per turn for client lists, so that a million sessions delay nobody: some
    /// 20 us.
    private static var listedPerTurn: Int { 512 }
    /// Steps per turn for lists of retained messages: a topic, ...
    private static var topicsPerTurn: Int { 2_048 }
    /// ... and more for one that may be on the page, which is kept and sorted.
    private static var stepsPerCandidate: Int { 16 }
    /// Steps of one page of subscriptions: a session, an eighth of a filter, 64 bytes of one.
    private static var subscriptionSteps: Int { 8_192 }
    private static var stepsPerFilter: Int { 8 }
    private static var bytesPerStep: Int { 64 }
    /// Steps that a page has left at least behind the filters of a session that it passes over, so
    /// that it gets on however many these are.
    private static var leastSteps: Int { 2_048 }
    /// Units of naming a receiver of a topic.
    private static var unitsPerReceiver: Int { 64 }

    // MARK: Clients

    /// Begins a page of clients. ``continueListings(address:peer:)`` calls `reply` with it, or with
    /// an error when the shard stops. Pages are made one at a time.
    public mutating func listClients(
        _ query: ClientQuery, reply: @escaping Reply<ClientPage>
    ) {
        features.requests.add(ClientListing(query, reply: reply))
    }

    /// Continues the requested lists by one slice. `address` formats the peer of a connection, and
    /// `peer` is its address.
    public mutating func continueListings(
        address: (Handle) -> String, peer: (Handle) -> IPAddress
    ) {
        var steps = Self.listedPerTurn
        while steps > 0, var listing = features.requests.takeListing() {
            let begin = listing.position
            let end = min(sessions.endIndex, begin + UInt32(steps))
            let order = listing.query.order
            while listing.position < end {
                let index = listing.position
                listing.position += 1
                guard sessions[index].isUsed else { continue }
                // Rejects most by one comparison, and looks at the rest of those that are left.
                let rank = rank(of: index, by: order)
                guard listing.mayHold(rank: rank),
                    !listing.isFiltered || matches(listing, index, peer)
                else { continue }
                sessions[index].clientID.withBytes {
                    listing.offer($0, rank: rank, index, hash)
                }
            }
            // At least one step, so that empty tables end the loop too.
            steps -= max(1, Int(listing.position - begin))
            guard listing.position >= sessions.endIndex else {
                features.requests.putBack(listing)
                break
            }
            finish(&listing, address, peer)
        }
        continueRetainedListings()
        continueReceivers()
    }

    private func finish(
        _ listing: inout ClientListing, _ address: (Handle) -> String,
        _ peer: (Handle) -> IPAddress
    ) {
        let (page, hasMore) = listing.finish()
        var clients: [ClientSummary] = []
        clients.reserveCapacity(page.count)
        for candidate in page {
            // Skip sessions that have ended since they were visited.
            guard let index = session(of: candidate), matches(listing, index, peer)
            else { continue }
            clients.append(summary(index, address))
        }
        let isRanked = listing.query.order.isRanked
        let next = hasMore ? page.last?.key.cursor(isRanked: isRanked) : nil
        listing.reply(.success(ClientPage(clients: clients, next: next)))
    }

    /// The session of a client that was visited, which may have begun anew; `nil` when it has ended.
    private func session(of candidate: PageSelection<UInt32>.Candidate) -> UInt32? {
        let key = candidate.key
        if key.isWhole { return key.text.withUnsafeBytes { sessions.find($0) } }
        guard sessions[candidate.item].isUsed,
            sessions[candidate.item].clientID.withBytes({
                SortKey($0, hash).text == key.text
            })
        else { return nil }
        return candidate.item
    }

    /// The place of a client in an order, lowest first; 0 for the order by identifier.
    private func rank(of index: UInt32, by order: ClientQuery.Order) -> UInt64 {
        let count: UInt64
        switch order {
        case .clientID: return 0
        case .since: return UInt64(max(0, sessions[index].sinceMs))
        case .queued: count = UInt64(sessions[index].outbound.waiting)
        case .queuedBytes: count = UInt64(sessions[index].outbound.waitingBytes)
        case .inFlight: count = UInt64(sessions[index].outbound.inFlight)
        case .dropped: count = sessions.drops(of: index).total
        case .subscriptions: count = UInt64(sessions[index].subscriptions.count)
        }
        return .max - count
    }

    private func matches(
        _ listing: ClientListing, _ index: UInt32, _ peer: (Handle) -> IPAddress
    ) -> Bool {
        let session = sessions[index]
        guard session.generation != 0 else { return false }
        let query = listing.query
        if let connected = query.connected, connected != (session.connection != nil) {
            return false
        }
        if let beforeMs = query.beforeMs, session.sinceMs >= beforeMs { return false }
        if let fromMs = query.fromMs, session.sinceMs < fromMs { return false }
        if let version = query.protocolVersion, version != session.versionText { return false }
        if let network = listing.network {
            guard let connection = session.connection, network.contains(peer(connection)) else {
                return false
            }
        }
        if !listing.prefix.isEmpty {
            guard session.clientID.withBytes({ $0.starts(with: listing.prefix) }) else {
                return false
            }
        }
        guard let userName = listing.userName else { return true }
        return session.hasUserName && userName.withUnsafeBytes { session.userName.equals($0) }
    }

    // MARK: Subscriptions

    /// A page of subscriptions, by session, after a bounded search.
    public func subscriptionPage(_ query: SubscriptionQuery) -> SubscriptionPage {
        var page = SubscriptionPage(subscriptions: [], next: nil)
        var place = ListPlace(query.from)
        var last = sessions.endIndex
        if let clientID = query.clientID {
            guard let index = find(clientID) else { return page }
            if place.session != index { place = ListPlace(session: index) }
            last = index + 1
        }
        var steps = Self.subscriptionSteps
        let prefix = Array(query.prefix.utf8)
        while place.session < last {
            let passed = 1 + Int(place.filter) / Self.stepsPerFilter
            steps = max(steps - passed, place.filter == 0 ? 0 : min(steps, Self.leastSteps))
            guard steps > 0, page.subscriptions.count < query.limit else {
                page.next = place.text
                return page
            }
            let session = sessions[place.session]
            let isWhole =
                session.generation == 0
                || subscriptions.forEachFilter(of: session.subscriptions, from: place.filter) {
                    filter, grant in
                    guard steps > 0, page.subscriptions.count < query.limit else { return false }
                    steps -= Self.stepsPerFilter + filter.count / Self.bytesPerStep
                    place.filter += 1
                    if filter.starts(with: prefix) {
                        page.subscriptions.append(listed(filter, grant.qos, of: session))
                    }
                    return true
                }
            if isWhole { place = ListPlace(session: place.session + 1) }
        }
        return page
    }

    private func listed(_ filter: [UInt8], _ qos: QoS, of session: Session) -> ListedSubscription {
        ListedSubscription(
            clientID: Self.text(session.clientID.array),
            userName: session.hasUserName ? Self.text(session.userName.array) : nil,
            connected: session.connection != nil, filter: Self.text(filter),
            qos: Int(qos.rawValue))
    }

    // MARK: Receivers

    /// Asks whom a message on a topic would reach now; of receivers and groups the first `limit` are
    /// named. ``continueListings(address:peer:)`` calls `reply` with them, or with an error when the shard
    /// stops.
    public mutating func listReceivers(
        of topic: String, qos: QoS, limit: Int, reply: @escaping Reply<TopicReceivers>
    ) {
        features.requests.add(
            ReceiversListing(topic: Array(topic.utf8), qos: qos, limit: limit, reply: reply))
    }

    /// Answers questions for receivers, for the share of the turn.
    private mutating func continueReceivers() {
        guard features.requests.awaitsReceivers else { return }
        context.budget.beginGroups()
        while !context.budget.isShareSpent, let listing = features.requests.firstReceiversListing {
            let answer: TopicReceivers? = listing.topic.withUnsafeBytes { topic in
                isMatched(topic, qos: nil, for: .question) ? receivers(topic, listing) : nil
            }
            guard let answer else { return }
            features.requests.removeReceiversListing()
            listing.reply(.success(answer))
            let candidates = answer.candidates.reduce(0) { $0 + $1.candidates.count }
            let named = answer.receivers.count + answer.groups.count + candidates
            context.budget.spend(Self.unitsPerReceiver * (1 + named))
            endMatch(of: .question)
        }
    }

    private mutating func receivers(
        _ topic: UnsafeRawBufferPointer, _ listing: ReceiversListing
    ) -> TopicReceivers {
        let matches = receivers(of: topic, isCounted: false)
        var answer = TopicReceivers(
            topic: String(decoding: topic, as: UTF8.self), matched: matches.count, receivers: [],
            groups: [])
        for match in matches.prefix(listing.limit) {
            answer.receivers.append(receiver(match.session, min(listing.qos, match.qos)))
        }
        if subscriptions.hasShared { addGroups(topic, listing, to: &answer) }
        return answer
    }

    /// Names the groups, and the members that may get the message of each.
    private mutating func addGroups(
        _ topic: UnsafeRawBufferPointer, _ listing: ReceiversListing,
        to answer: inout TopicReceivers
    ) {
        var left = listing.limit
        let bound = rights.steps + 4 * WorkBudget.mostRuleSteps
        for match in subscriptions.groups.prefix(listing.limit) {
            let filter = Self.text(subscriptions.filter(of: match.session).array)
            answer.groups.append(filter)
            var group = TopicCandidates(
                filter: filter, members: subscriptions.memberCount(of: match.session),
                candidates: [])
            let members = subscriptions.members(of: match.session, most: left)
            left -= members.count
            // A member behind many costly questions is not listed, but counted.
            for member in members
            where sessions[member.session].isUsed && rights.steps <= bound
                && rights.mayReceive(topic, sessions[member.session])
            {
                group.candidates.append(receiver(member.session, min(listing.qos, member.qos)))
            }
            answer.candidates.append(group)
        }
    }

    private func receiver(_ place: UInt32, _ qos: QoS) -> TopicReceiver {
        let session = sessions[place]
        return TopicReceiver(
            clientID: Self.text(session.clientID.array),
            userName: session.hasUserName ? Self.text(session.userName.array) : nil,
            qos: Int(qos.rawValue),
            outcome: session.connection != nil
                ? .sent : session.isPersistent && qos != .atMostOnce ? .queued : .lost)
    }

    // MARK: Retained messages

    /// Begins a page of retained messages, which ``continueListings(address:peer:)`` answers.
    public mutating func listRetained(
        _ query: RetainedQuery, reply: @escaping Reply<RetainedPage>
    ) {
        let cursor = retained.cursor(Array(query.filter.utf8))
        features.requests.add(RetainedListing(query, cursor, reply: reply))
    }

    private mutating func continueRetainedListings() {
        var steps = Self.topicsPerTurn
        while steps > 0, var listing = features.requests.takeRetainedListing() {
            walk: while true {
                switch retained.next(&listing.cursor, steps: &steps) {
                case .message(let message):
                    guard !message.isExpired(atMs: context.wallClockMs) else { continue }
                    if listing.offer(message, hash, pool: pool) { steps -= Self.stepsPerCandidate }
                case .paused:
                    features.requests.putBack(listing)
                    return
                case .finished: break walk
                }
            }
            retained.end(listing.cursor)
            listing.finish(pool: pool)
            steps -= 1
        }
    }

    /// The retained message of a topic; `nil` without one.
    public func retainedMessage(of topic: String) -> RetainedMessage? {
        Array(topic.utf8).withUnsafeBytes { topic in
            retained.message(of: topic).flatMap { message in
                guard !message.isExpired(atMs: context.wallClockMs) else { return nil }
                return RetainedMessage(
                    summary: RetainedSummary(message), payload: [UInt8](message.payload))
            }
        }
    }

    /// Removes a topic's retained message, tells nobody, and answers once that is stored: false
    /// without one.
    public mutating func removeRetained(_ topic: String, reply: @escaping Reply<Bool>) {
        // A removal gives room back, so it does not wait for room.
        guard !commits.isBacklogFull else {
            reply(.failure(.storeRefuses))
            return
        }
        let wasThere = Array(topic.utf8).withUnsafeBytes { topic in
            guard let message = retained.message(of: topic),
                !message.isExpired(atMs: context.wallClockMs)
            else { return false }
            retained.remove(topic)
            commits.records.retainedRemoved(topic: topic)
            return true
        }
        guard wasThere, commits.records.hasUncommittedRecords else {
            reply(.success(wasThere))
            return
        }
        commit(true, reply)
    }
}

/// A place in the list of subscriptions: a session, and how many of its filters come before.
private struct ListPlace {
    var session: UInt32
    var filter: UInt32 = 0

    init(session: UInt32) { self.session = session }

    init(_ value: UInt64) {
        session = UInt32(truncatingIfNeeded: value >> 32)
        filter = UInt32(truncatingIfNeeded: value)
    }

    var text: String { "\(UInt64(session) << 32 | UInt64(filter))" }
}
