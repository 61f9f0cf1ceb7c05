import MQTTCodec
import MQTTCore
import Structures

/// The subscriptions of all sessions: the topic tree of plain filters, and the groups of shared ones.
package struct Subscriptions: ~Copyable {
    /// Never read; see the same in ``Shard``.
    private let addressOnly: any Sendable = ()
    private var trie: SubscriptionTrie
    private var shared: SharedSubscriptions
    private var choices = GroupChoices()
    private var unfinished = UnfinishedChanges()

    package init(hash: KeyedHash, pool: BytePool) {
        trie = SubscriptionTrie(hash: hash, pool: pool)
        shared = SharedSubscriptions(hash: hash, pool: pool)
    }

    package var plainCount: Int { trie.count }
    package var sharedCount: Int { shared.count }
    package var hasShared: Bool { !shared.isEmpty }

    // MARK: Changes

    /// Adds a subscription of a session, or replaces the grant of an equal one [MQTT-3.8.4-3].
    package mutating func add(
        _ session: UInt32, _ list: inout SessionSubscriptions, filter: UnsafeRawBufferPointer,
        grant: SubscriptionGrant, isOnline: Bool
    ) -> SubscriptionTrie.Subscribed {
        let subscribed =
            SharedSubscriptions.isShared(filter)
            ? shared.subscribe(
                session, &list.shared, text: filter, grant: grant, isOnline: isOnline)
            : trie.subscribe(session, &list.filters, filter: filter, grant: grant)
        if subscribed == .added {
            let levels = TopicLevels.count(filter)
            list.weight += TopicLevels.weight(ofLevels: levels)
            list.units += SessionBytes.units(ofFilter: filter, levels: levels)
        }
        return subscribed
    }

    /// Removes the subscription with an identical filter [MQTT-3.10.4-1].
    package mutating func remove(
        _ session: UInt32, _ list: inout SessionSubscriptions, filter: UnsafeRawBufferPointer
    ) -> Removed {
        let removed: Removed
        if SharedSubscriptions.isShared(filter) {
            removed =
                shared.unsubscribe(&list.shared, text: filter).map { .shared(group: $0) } ?? .none
        } else {
            removed =
                trie.unsubscribe(session, &list.filters, filter: filter) ? .plain : .none
        }
        if removed != .none {
            let levels = TopicLevels.count(filter)
            list.weight -= TopicLevels.weight(ofLevels: levels)
            list.units -= SessionBytes.units(ofFilter: filter, levels: levels)
        }
        return removed
    }

    /// Removes the subscriptions of a session that ends: at once as many as ``UnfinishedChanges``
    /// allows in a turn, the others in later turns. True when none is left; else the session's index
    /// must not be used again until ``nextEmptied()`` has returned it.
    package mutating func removeAll(_ session: UInt32, _ list: inout SessionSubscriptions) -> Bool {
        let isEmptied = removeSome(&list)
        if !isEmptied { unfinished.add(session, list) }
        list = SessionSubscriptions()
        return isEmptied
    }

    private mutating func removeSome(_ list: inout SessionSubscriptions) -> Bool {
        let before = unfinished.steps
        trie.removeSome(&list.filters, steps: &unfinished.steps)
        shared.removeSome(&list.shared, steps: &unfinished.steps)
        asked += before - unfinished.steps
        return list.count == 0
    }

    /// Notes that the session's client is connected or offline; groups prefer connected members.
    package mutating func setOnline(_ list: SessionSubscriptions, _ isOnline: Bool) {
        shared.setOnline(list.shared, isOnline)
    }

    package var hasUnfinished: Bool { !unfinished.isEmpty || !shared.isSettled }

    /// True when ``beginTurn()`` and ``nextEmptied()`` have something to do.
    package var needsTurn: Bool {
        hasUnfinished || unfinished.steps != UnfinishedChanges.stepsPerTurn
    }

    /// Begins a turn, and goes on with what earlier turns have left.
    package mutating func beginTurn() {
        unfinished.beginTurn()
        guard !shared.isSettled else { return }
        shared.moveMembers(steps: &unfinished.steps)
        asked += UnfinishedChanges.stepsPerTurn - unfinished.steps
    }

    /// Goes on with the removal of subscriptions, within this turn's bound. Returns a session that
    /// has none left.
    package mutating func nextEmptied() -> UInt32? {
        while unfinished.steps > 0, let (session, left) = unfinished.takeFirst() {
            var list = left
            if removeSome(&list) { return session }
            unfinished.putBack(session, list)
        }
        return nil
    }

    /// All filters of a session; shared ones include `$share/` and the group.
    package func filters(of list: SessionSubscriptions) -> [(filter: [UInt8], qos: QoS)] {
        var filters: [(filter: [UInt8], qos: QoS)] = []
        _ = forEachFilter(of: list, from: 0) { filter, grant in
            filters.append((filter, grant.qos))
            return true
        }
        return filters
    }

    /// Calls `body` for the filters of a session behind the first `skipped`, until it returns false;
    /// returns whether it never did.
    package func forEachFilter(
        of list: SessionSubscriptions, from skipped: UInt32,
        _ body: ([UInt8], SubscriptionGrant) -> Bool
    ) -> Bool {
        let plain = list.filters.count
        return trie.forEachSubscription(of: list.filters, from: skipped, body)
            && shared.forEachSubscription(
                of: list.shared, from: skipped > plain ? skipped - plain : 0, body)
    }

    // MARK: Grants

    /// Identifiers of the subscriptions that ``grants(of:_:_:group:)`` has found.
    private var identifiers = GrowableBuffer<SubscriptionIdentifier>()

    /// What the session's subscriptions that match a topic were granted. Of a message that came by a
    /// shared subscription, only that of its `group` counts; ``noIndex`` for none. The identifiers
    /// are valid until the next call.
    package mutating func grants(
        of session: UInt32, _ list: SessionSubscriptions, _ topic: UnsafeRawBufferPointer,
        group: UInt32
    ) -> (grants: MatchedGrants, identifiers: UnsafeBufferPointer<SubscriptionIdentifier>) {
        identifiers.removeAll()
        guard group == noIndex else {
            let grants = shared.grants(list.shared, group, identifiers: &identifiers)
            return (grants, identifiers.contents)
        }
        let grants = trie.grants(of: session, list.filters, topic, identifiers: &identifiers)
        return (grants, identifiers.contents)
    }

    // MARK: Matching

    /// Rights that were asked since ``takeWork()``, and steps of ``UnfinishedChanges``.
    private var asked = 0

    /// True when matching, choosing or removing has cost something since ``takeWork()``.
    @inline(__always)
    package var hasWork: Bool { trie.hasWork || asked != 0 || choices.steps != 0 }

    /// The steps of matching, choosing and removing since the last call, for ``WorkBudget``.
    @inline(never)
    package mutating func takeWork() -> Int {
        defer { asked = 0 }
        return asked + choices.takeSteps() + trie.takeWork() + shared.takeWork()
    }

    /// The groups with a filter that matches the topic of the last match; valid until the next change
    /// or call. Without any shared subscription they are those of an earlier match.
    package private(set) var groups = UnsafeBufferPointer<SubscriptionTrie.Match>(
        start: nil, count: 0)

    /// Every session with a matching plain filter, each once; valid until the next call. ``groups``
    /// are matched too. `nil` when either takes more than `most` steps, or when with such a bound so many
    /// groups match that their members are chosen in slices: see ``matchSlice(_:steps:)``.
    @inline(__always)
    package mutating func match(
        _ topic: UnsafeRawBufferPointer, most: Int
    ) -> UnsafeBufferPointer<SubscriptionTrie.Match>? {
        guard shared.isEmpty || matchGroups(topic, most: most) else { return nil }
        return trie.match(topic, most: most)
    }

    /// Groups whose members are chosen at once: as many as the cache of matches holds for a topic.
    private static var mostGroups: Int { 1_024 }

    private mutating func matchGroups(_ topic: UnsafeRawBufferPointer, most: Int) -> Bool {
        if choices.areAllDelivered(of: topic) {
            groups = UnsafeBufferPointer(start: nil, count: 0)
            return true
        }
        guard let found = shared.match(topic, most: most) else { return false }
        groups = found
        return most == .max || found.count <= Self.mostGroups
    }

    /// As ``match(_:most:)``, without sessions for which `isPermitted` is false, and `nil` when it answers
    /// `nil`. The result is cached until a subscription changes or ``forgetPermissions()`` is called.
    @inline(never)
    package mutating func match(
        _ topic: UnsafeRawBufferPointer, most: Int, isPermitted: (UInt32) -> Bool?
    ) -> SubscriptionTrie.Permitted? {
        guard shared.isEmpty || matchGroups(topic, most: most) else { return nil }
        switch trie.search(topic, most: most) {
        case nil: return nil
        case .cached(let permitted): return permitted
        case .collected(let matches):
            var count = 0
            for match in matches {
                asked += 1
                guard let isPermitted = isPermitted(match.session) else { return nil }
                guard isPermitted else { continue }
                matches[count] = match
                count += 1
            }
            return trie.keep(topic, permitted: count)
        }
    }

    /// Goes on with a match that takes very many steps, for about so many. True when it is complete:
    /// a match of this topic then has the result at once, until ``endSlices()``.
    package mutating func matchSlice(_ topic: UnsafeRawBufferPointer, steps: Int) -> Bool {
        var left = steps
        guard trie.matchSlice(topic, steps: &left) else { return false }
        return shared.isEmpty || shared.matchSlice(topic, steps: &left)
    }

    /// As ``matchSlice(_:steps:)``, without sessions for which `isPermitted` is false; each answer takes
    /// its cost off the steps.
    package mutating func matchSlice(
        _ topic: UnsafeRawBufferPointer, steps: Int,
        isPermitted: (_ session: UInt32, _ steps: inout Int) -> Bool
    ) -> Bool {
        var left = steps
        guard trie.matchSlice(topic, steps: &left), trie.askSlice(steps: &left, isPermitted) else {
            return false
        }
        return shared.isEmpty || shared.matchSlice(topic, steps: &left)
    }

    package mutating func endSlices() {
        choices.endUnfinished(shared)
        trie.endSlices()
        shared.endSlices()
    }

    /// Drops cached results, because the access rules, or those of one session, have changed.
    package mutating func forgetPermissions() {
        trie.invalidate()
        choices.restart()
    }

    package mutating func forgetPermissions(of session: UInt32) {
        trie.invalidate(session)
        choices.noteRights(of: session)
    }

    // MARK: Groups

    package func group(_ filter: UnsafeRawBufferPointer) -> UInt32? { shared.group(filter) }

    package func filter(of group: UInt32) -> CompactBytes { shared.text(of: group) }

    package func contains(_ list: SessionSubscriptions, _ group: UInt32) -> Bool {
        shared.contains(list.shared, group)
    }

    package func hasMembers(_ group: UInt32) -> Bool { shared.hasMembers(group) }
    /// The first members of a group, at most `most`: the connected ones, then the offline ones, in
    /// the order of their turns.
    package func members(of group: UInt32, most: Int) -> [SharedSubscriptions.Choice] {
        shared.members(of: group, most: most)
    }

    package func memberCount(of group: UInt32) -> Int { shared.memberCount(of: group) }

    /// Members looked at for a connected one while memberships stand in the wrong ring.
    private static var mostSettled: Int { 1_000 }

    /// Chooses the member of one group that gets the next message of QoS `qos`; see
    /// ``SharedSubscriptions/choose(of:qos:asked:mayReceive:readiness:)``. `isConnected` tells whether
    /// a session's client is connected.
    package mutating func chooseMember(
        of group: UInt32, qos: QoS, mayReceive: (UInt32) -> Bool, isConnected: (UInt32) -> Bool,
        readiness: (SharedSubscriptions.Choice) -> SharedSubscriptions.Readiness
    ) -> SharedSubscriptions.Decision {
        if hasUnfinished { shared.settle(group, most: Self.mostSettled, isConnected) }
        return shared.choose(
            of: group, qos: qos, most: choices.mostAsked, asked: &choices.steps,
            mayReceive: mayReceive
        ) { unfinished.contains($0.session) ? .keepsNone : readiness($0) }
    }

    /// Gives the turn to the member behind this one, which gets the message although it has no room.
    package mutating func takeTurn(_ member: UInt32) -> SharedSubscriptions.Choice {
        shared.takeTurn(member)
    }

    /// Lets the next choice ask many members, for a message that goes to one group.
    package mutating func beginSearch() { choices.beginSearch() }
    /// Begins the choice of members for a message; ``give(_:)`` notes the one of each of ``groups``.
    package mutating func beginChoices() { choices.begin() }
    package mutating func give(_ choice: SharedSubscriptions.Choice) { choices.give(choice) }

    /// Gives it to another member of the same group than ``give(_:)`` has noted.
    package mutating func give(_ choice: SharedSubscriptions.Choice, at place: Int) {
        choices.give(choice, at: place)
    }

    package var members: UnsafeBufferPointer<SharedSubscriptions.Choice> { choices.members }

    // MARK: Choices ahead of the delivery

    /// Begins, or goes on with, the choice for a message whose match in slices is complete.
    package mutating func beginAhead(
        _ name: UnsafeRawBufferPointer, _ qos: QoS, sender: MatchPublisher?
    ) { choices.beginAhead(name, qos, sender: sender) }

    /// The next group; ``keepAhead(_:of:)`` keeps what is chosen for it. `nil` when none is left.
    package mutating func nextGroupAhead() -> UInt32? { choices.nextGroup(shared) }

    package mutating func keepAhead(_ choice: SharedSubscriptions.Decision, of group: UInt32) {
        choices.keep(choice, of: group, shared)
    }

    package mutating func noteDelivered(to group: UInt32) { choices.noteDelivered(to: group) }
    package func isDelivered(to group: UInt32) -> Bool { choices.isDelivered(to: group) }

    /// Members that were asked since ``takeWork()``.
    package var choiceSteps: Int { choices.steps }

    /// True when members were chosen ahead for a publisher's message; ``endAhead()`` has to follow.
    package func isAhead(
        _ topic: UnsafeRawBufferPointer, _ qos: QoS, for publisher: MatchPublisher?
    ) -> Bool { choices.isAhead(topic, qos) && choices.isFor(publisher) }

    /// What was chosen for a group ahead, if it still holds.
    package func aheadChoice(
        of group: UInt32, isConnected: (UInt32) -> Bool
    ) -> SharedSubscriptions.Decision? {
        choices.aheadChoice(of: group, shared, isConnected: isConnected) {
            unfinished.contains($0)
        }
    }

    package mutating func endAhead() { choices.endAhead() }
}
