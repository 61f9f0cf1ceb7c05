import MQTTCodec
import Structures

/// Subscriptions `$share/<group>/<filter>`: a message goes to one member of each group whose filter
/// matches.
///
/// The form is that of MQTT 5.0, section 4.8.2, which many brokers also offer to 3.1.1 clients. A
/// group is named by its whole text: the same name with another filter is another group. Connected
/// members stand in one ring and offline members in another, so that choosing one takes constant
/// time however many are offline. The members of a session that has very many change rings a few at
/// a time; while ``isSettled`` is false, ``settle(_:most:_:)`` comes before a choice.
public struct SharedSubscriptions: ~Copyable {
    /// Never read. It makes the type address-only: methods that do not mutate get its address, where
    /// the compiler would copy the whole struct before each call that it does not inline.
    private let addressOnly: any Sendable = ()

    /// The memberships of one session.
    public struct List: BitwiseCopyable {
        fileprivate var members = IntrusiveList<InSession>()
        public fileprivate(set) var count: UInt32 = 0

        public init() {}
    }

    fileprivate enum InSession: ListField {
        static subscript(member: UnsafeMutablePointer<Member>) -> ListLinks {
            get { member.pointee.inSession }
            set { member.pointee.inSession = newValue }
        }
    }

    /// A member that a message may go to.
    public struct Choice: BitwiseCopyable {
        public var session: UInt32
        public var group: UInt32
        public var qos: QoS
        /// Its index, until it leaves the group.
        public var member: UInt32
    }

    var groups = Slab<Group>()
    private var groupIndex = HashIndex()
    var members = Slab<Member>()
    private var moves = PresenceMoves()
    private(set) var sessionIndex: SessionIndex
    /// The filters of all groups. A group takes the place of a session in this trie.
    private var trie: SubscriptionTrie
    private var lastVersion: UInt32 = 0
    private let hash: KeyedHash
    private let pool: BytePool

    public init(hash: KeyedHash, pool: BytePool) {
        trie = SubscriptionTrie(hash: hash, pool: pool)
        sessionIndex = SessionIndex(hash: hash)
        self.hash = hash
        self.pool = pool
    }

    /// Number of memberships in all groups.
    public var count: Int { members.count }
    public var isEmpty: Bool { members.count == 0 }

    // MARK: Members

    /// Adds the session to a group, or changes its grant there. ``filter(in:)`` must have accepted
    /// `text`.
    public mutating func subscribe(
        _ session: UInt32, _ list: inout List, text: UnsafeRawBufferPointer,
        grant: SubscriptionGrant, isOnline: Bool
    ) -> SubscriptionTrie.Subscribed {
        let group = findGroup(text) ?? addGroup(text)
        if let member = find(list, group) {
            members[member].grant = grant
            return .replaced
        }
        let member = members.insert(
            Member(
                session: session, group: group, joined: lastVersion &+ 1, grant: grant,
                isOnline: isOnline))
        groups[group][isOnline: isOnline].append(member, in: members)
        list.members.prepend(member, in: members)
        list.count += 1
        groups[group].members += 1
        noteChange(of: group)
        if list.count > SessionIndex.mostWalked + 1 {
            sessionIndex.insert(session, group, member)
        } else if list.count > SessionIndex.mostWalked {
            insertIntoIndex(list)
        }
        return .added
    }

    /// Removes the session from a group and returns the group; `nil` when it was not a member. The
    /// returned index is valid until the next change.
    public mutating func unsubscribe(
        _ list: inout List, text: UnsafeRawBufferPointer
    ) -> UInt32? {
        guard let group = findGroup(text), let member = find(list, group) else { return nil }
        remove(member, group, &list)
        return group
    }

    /// Removes a session from its groups; see ``SubscriptionTrie/removeSome(_:steps:)``.
    public mutating func removeSome(_ list: inout List, steps: inout Int) {
        while steps > 0, !list.members.isEmpty {
            let member = list.members.first
            let nodes = trie.tree.count
            remove(member, members[member].group, &list)
            steps -= 1 + nodes - trie.tree.count
        }
    }

    private mutating func remove(_ member: UInt32, _ group: UInt32, _ list: inout List) {
        let session = members[member].session
        moves.remove(session, member, next: members[member].inSession.next)
        list.members.remove(member, in: members)
        if list.count > SessionIndex.mostWalked {
            sessionIndex.remove(session, group, member)
            if list.count == SessionIndex.mostWalked + 1 { removeFromIndex(list) }
        }
        list.count -= 1
        remove(member)
    }

    // MARK: Presence

    /// Memberships that change rings at once when their client connects or goes offline.
    private static var mostMovedAtOnce: Int { 64 }

    /// The session's client has connected, or gone offline. Its memberships change rings, the first
    /// at once and the others with ``moveMembers(steps:)``.
    public mutating func setOnline(_ list: List, _ isOnline: Bool) {
        let first = list.members.first
        guard first != noIndex else { return }
        var steps = Self.mostMovedAtOnce
        let session = members[first].session
        run(PresenceMoves.Move(session: session, member: first, isOnline: isOnline), &steps)
    }

    /// False while memberships stand in the ring where their client no longer belongs.
    public var isSettled: Bool { moves.isEmpty }

    /// Moves memberships that ``setOnline(_:_:)`` has left, at most so many.
    public mutating func moveMembers(steps: inout Int) {
        while steps > 0, let move = moves.takeFirst() { run(move, &steps) }
    }

    /// Moves members of a group that stand in the wrong ring, until a connected one comes first; at
    /// most so many of each ring are looked at.
    public mutating func settle(_ group: UInt32, most: Int, _ isConnected: (UInt32) -> Bool) {
        for _ in 0..<most {
            guard let first = first(group, isOnline: true) else { break }
            if isConnected(members[first].session) { return }
            place(first, isOnline: false)
        }
        guard var member = first(group, isOnline: false) else { return }
        for _ in 0..<most {
            if isConnected(members[member].session) {
                place(member, isOnline: true)
                return
            }
            member = next(member)
        }
    }

    /// Moves a member to the ring of connected or of offline members.
    private mutating func place(_ member: UInt32, isOnline: Bool) {
        guard members[member].isOnline != isOnline else { return }
        let group = members[member].group
        groups[group][isOnline: !isOnline].remove(member, in: members)
        members[member].isOnline = isOnline
        groups[group][isOnline: isOnline].append(member, in: members)
        noteChange(of: group)
    }

    private mutating func noteChange(of group: UInt32) {
        lastVersion &+= 1
        groups[group].version = lastVersion
    }

    private mutating func run(_ start: PresenceMoves.Move, _ steps: inout Int) {
        var move = start
        while steps > 0, move.member != noIndex {
            place(move.member, isOnline: move.isOnline)
            move.member = members[move.member].inSession.next
            steps -= 1
        }
        moves.put(move)
    }

    /// Calls `body` for the session's subscriptions behind the first `skipped`, until it returns
    /// false; returns whether it never did.
    public func forEachSubscription(
        of list: List, from skipped: UInt32, _ body: ([UInt8], SubscriptionGrant) -> Bool
    ) -> Bool {
        var place: UInt32 = 0
        var index = list.members.first
        while index != noIndex {
            let member = members[index]
            if place >= skipped, !body(groups[member.group].text.array, member.grant) {
                return false
            }
            place += 1
            index = member.inSession.next
        }
        return true
    }

    /// The group with this text; `nil` when it has no members.
    public func group(_ text: UnsafeRawBufferPointer) -> UInt32? { findGroup(text) }

    /// True when the session is a member of the group.
    public func contains(_ list: List, _ group: UInt32) -> Bool { find(list, group) != nil }

    /// What the session was granted as a member of the group, with the identifier at the end of
    /// `identifiers`.
    public func grants(
        _ list: List, _ group: UInt32, identifiers: inout GrowableBuffer<SubscriptionIdentifier>
    ) -> MatchedGrants {
        var found = MatchedGrants()
        guard let member = find(list, group) else { return found }
        found.add(members[member].grant, identifiers: &identifiers)
        return found
    }

    /// The text of a group, valid while the group has members.
    public func text(of group: UInt32) -> CompactBytes { groups[group].text }

    // MARK: Choosing

    /// The groups whose filter matches a topic; valid until the next change or call. `nil` when that
    /// takes too many steps, see ``SubscriptionTrie/match(_:most:)``.
    public mutating func match(
        _ topic: UnsafeRawBufferPointer, most: Int
    ) -> UnsafeBufferPointer<SubscriptionTrie.Match>? {
        trie.match(topic, most: most)
    }

    /// See ``SubscriptionTrie/matchSlice(_:steps:)``.
    public mutating func matchSlice(
        _ topic: UnsafeRawBufferPointer, steps: inout Int
    ) -> Bool {
        trie.matchSlice(topic, steps: &steps)
    }

    public mutating func endSlices() { trie.endSlices() }

    /// The number of places for ``slicedGroup(at:)``; it only rises while the match lasts.
    public var slicedCount: Int { trie.sliced.count }

    /// A group that the match in slices has found; `nil` at the place of one that matches no more.
    public func slicedGroup(at place: Int) -> UInt32? { trie.sliced.session(at: place) }

    /// The steps of matching since the last call; see ``SubscriptionTrie/takeWork()``.
    public mutating func takeWork() -> Int { trie.takeWork() }

    /// The member whose turn follows that of `member` in its ring.
    public func next(_ member: UInt32) -> UInt32 {
        groups[members[member].group][isOnline: members[member].isOnline]
            .next(after: member, in: members)
    }

    public subscript(member: UInt32) -> Choice {
        Choice(
            session: members[member].session, group: members[member].group,
            qos: members[member].qos, member: member)
    }

    /// Gives the turn to the member behind this one, which has got the message.
    public mutating func passTurn(_ member: UInt32) {
        let next = next(member)
        groups[members[member].group][isOnline: members[member].isOnline]
            .rotate(to: next, in: members)
    }

    /// The number of members of a group; 0 for one that is gone.
    public func memberCount(of group: UInt32) -> Int {
        group < groups.endIndex ? Int(groups[group].members) : 0
    }

    // MARK: Groups

    private func findGroup(_ text: UnsafeRawBufferPointer) -> UInt32? {
        groupIndex.find(hash(text)) { groups[$0].text.equals(text) }
    }

    /// Finds a session's membership in a group, in the session's list or by ``SessionIndex``.
    private func find(_ list: List, _ group: UInt32) -> UInt32? {
        guard list.members.first != noIndex else { return nil }
        let session = members[list.members.first].session
        guard list.count <= SessionIndex.mostWalked else {
            return sessionIndex.find(session, group) {
                members[$0].session == session && members[$0].group == group
            }
        }
        var member = list.members.first
        while member != noIndex {
            if members[member].group == group { return member }
            member = members[member].inSession.next
        }
        return nil
    }

    private mutating func insertIntoIndex(_ list: List) {
        var index = list.members.first
        while index != noIndex {
            sessionIndex.insert(members[index].session, members[index].group, index)
            index = members[index].inSession.next
        }
    }

    private mutating func removeFromIndex(_ list: List) {
        var index = list.members.first
        while index != noIndex {
            sessionIndex.remove(members[index].session, members[index].group, index)
            index = members[index].inSession.next
        }
    }

    private mutating func addGroup(_ text: UnsafeRawBufferPointer) -> UInt32 {
        guard let filter = Self.filter(in: text) else {
            preconditionFailure("a shared subscription without a filter")
        }
        let group = groups.insert(Group(text: CompactBytes(text, pool: pool)))
        groupIndex.insert(hash(text), group)
        _ = trie.subscribe(
            group, &groups[group].filter, filter: filter, grant: SubscriptionGrant(.exactlyOnce))
        return group
    }

    private mutating func remove(_ member: UInt32) {
        let group = members[member].group
        groups[group][isOnline: members[member].isOnline].remove(member, in: members)
        members[member].group = noIndex
        members.remove(member)
        groups[group].members -= 1
        guard groups[group].members == 0 else {
            noteChange(of: group)
            return
        }
        trie.removeAll(&groups[group].filter)
        groups[group].text.withBytes { groupIndex.remove(hash($0), group) }
        groups[group].text.destroy(in: pool)
        groups.remove(group)
    }
}
