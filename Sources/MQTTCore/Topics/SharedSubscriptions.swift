import MQTTCodec
import Structures

/// Subscriptions `$share/<group>/<filter>`: each message goes to one member of every group that wants it.
///
/// The form is that of MQTT 5.0, section 4.8.2, which brokers also serve to 3.1.1 clients. A group is
/// its whole text: the same name with another filter is another group. Members whose clients are
/// connected stand in one ring, the others in a second one, so that choosing takes constant time
/// however many are away.
public struct SharedSubscriptions: ~Copyable {
    struct Group: BitwiseCopyable {
        /// The whole text, `$share/` included.
        var text: CompactBytes
        /// Whose turn is next among the connected, and among the absent.
        var online: UInt32
        var away: UInt32
        var members: UInt32
        /// Its filter, as the subscription trie keeps it.
        var filter: SubscriptionTrie.List
    }

    struct Member: BitwiseCopyable {
        var session: UInt32
        var group: UInt32
        var next: UInt32
        var previous: UInt32
        var nextInSession: UInt32
        var previousInSession: UInt32
        var qos: QoS
        var isOnline: Bool
    }

    /// A session's memberships.
    public struct List: BitwiseCopyable {
        var first: UInt32
        public fileprivate(set) var count: UInt32

        public init() {
            first = noIndex
            count = 0
        }
    }

    /// A member as one that a message may go to.
    public struct Choice: BitwiseCopyable {
        public var session: UInt32
        public var group: UInt32
        public var qos: QoS
    }

    private var groups = Slab<Group>()
    private var groupIndex = HashIndex()
    private var members = Slab<Member>()
    private(set) var sessionIndex: SessionIndex
    /// The filters of all groups; a group is the "session" there.
    private var trie: SubscriptionTrie
    private let hash: KeyedHash
    private let pool: BytePool

    public init(hash: KeyedHash, pool: BytePool) {
        trie = SubscriptionTrie(hash: hash, pool: pool)
        sessionIndex = SessionIndex(hash: hash)
        self.hash = hash
        self.pool = pool
    }

    /// Memberships in all groups.
    public var count: Int { members.count }
    public var isEmpty: Bool { members.count == 0 }

    /// Whether a filter asks for a shared subscription.
    public static func isShared(_ filter: UnsafeRawBufferPointer) -> Bool {
        filter.starts(with: "$share/".utf8) || filter.elementsEqual("$share".utf8)
    }

    /// The filter behind the group's name; `nil` when the text is no `$share/<group>/<filter>` with a
    /// name of at least one character and none of `+`, `#`, and a filter of at least one.
    public static func filter(in text: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        let prefix = 7
        guard isShared(text), text.count > prefix else { return nil }
        var end = prefix
        while end < text.count, text[end] != TopicTree.separator {
            guard text[end] != 0x2B, text[end] != 0x23 else { return nil }
            end += 1
        }
        guard end > prefix, end + 1 < text.count else { return nil }
        return UnsafeRawBufferPointer(rebasing: text[(end + 1)...])
    }

    // MARK: Members

    /// Adds the session to a group, or changes its QoS; `text` is checked (``filter(in:)``).
    public mutating func subscribe(
        _ session: UInt32, _ list: inout List, text: UnsafeRawBufferPointer, qos: QoS,
        isOnline: Bool
    ) -> SubscriptionTrie.Subscribed {
        let group = findGroup(text) ?? addGroup(text)
        if let member = find(list, group) {
            members[member].qos = qos
            return .replaced
        }
        let member = members.insert(
            Member(
                session: session, group: group, next: noIndex, previous: noIndex,
                nextInSession: list.first, previousInSession: noIndex, qos: qos,
                isOnline: isOnline))
        link(member)
        if list.first != noIndex { members[list.first].previousInSession = member }
        list.first = member
        list.count += 1
        groups[group].members += 1
        if list.count > SessionIndex.mostWalked + 1 {
            sessionIndex.insert(session, group, member)
        } else if list.count > SessionIndex.mostWalked {
            insertIntoIndex(list)
        }
        return .added
    }

    /// Takes the session out of a group; the group, or `nil` when it was no member. The index stays
    /// valid until the next change.
    public mutating func unsubscribe(
        _ list: inout List, text: UnsafeRawBufferPointer
    ) -> UInt32? {
        guard let group = findGroup(text), let member = find(list, group) else { return nil }
        let removed = members[member]
        if removed.previousInSession != noIndex {
            members[removed.previousInSession].nextInSession = removed.nextInSession
        } else {
            list.first = removed.nextInSession
        }
        if removed.nextInSession != noIndex {
            members[removed.nextInSession].previousInSession = removed.previousInSession
        }
        if list.count > SessionIndex.mostWalked {
            sessionIndex.remove(removed.session, group, member)
            if list.count == SessionIndex.mostWalked + 1 { removeFromIndex(list) }
        }
        list.count -= 1
        remove(member)
        return group
    }

    public mutating func removeAll(_ list: inout List) {
        if list.count > SessionIndex.mostWalked { removeFromIndex(list) }
        var index = list.first
        while index != noIndex {
            let next = members[index].nextInSession
            remove(index)
            index = next
        }
        list = List()
    }

    /// The session's client came, or went.
    public mutating func setOnline(_ list: List, _ isOnline: Bool) {
        var index = list.first
        while index != noIndex {
            if members[index].isOnline != isOnline {
                unlink(index)
                members[index].isOnline = isOnline
                link(index)
            }
            index = members[index].nextInSession
        }
    }

    /// A session's shared subscriptions as it asked for them, with their QoS.
    public func subscriptions(of list: List) -> [(filter: [UInt8], qos: QoS)] {
        var result: [(filter: [UInt8], qos: QoS)] = []
        var index = list.first
        while index != noIndex {
            result.append((groups[members[index].group].text.array, members[index].qos))
            index = members[index].nextInSession
        }
        return result
    }

    /// The group of this text; `nil` when it has no member.
    public func group(_ text: UnsafeRawBufferPointer) -> UInt32? { findGroup(text) }

    /// Whether a session is a member of a group.
    public func contains(_ list: List, _ group: UInt32) -> Bool { find(list, group) != nil }

    /// The text of a group that has members, valid as long as it has.
    public func text(of group: UInt32) -> CompactBytes { groups[group].text }

    // MARK: Choosing

    /// The groups that want a topic; valid until the next change or call.
    public mutating func match(
        _ topic: UnsafeRawBufferPointer
    ) -> UnsafeBufferPointer<SubscriptionTrie.Match> {
        trie.match(topic)
    }

    /// Whose turn is next among a group's connected or absent members; `nil` when there are none.
    public func first(_ group: UInt32, isOnline: Bool) -> UInt32? {
        let first = isOnline ? groups[group].online : groups[group].away
        return first == noIndex ? nil : first
    }

    /// The member whose turn comes after this one's, in a ring.
    public func next(_ member: UInt32) -> UInt32 { members[member].next }

    public subscript(member: UInt32) -> Choice {
        Choice(
            session: members[member].session, group: members[member].group,
            qos: members[member].qos)
    }

    /// The member got the message: the turn goes to the one after it.
    public mutating func passTurn(_ member: UInt32) {
        setFirst(members[member].next, members[member].group, members[member].isOnline)
    }

    /// Whether the group still has members.
    public func hasMembers(_ group: UInt32) -> Bool {
        group < groups.endIndex && groups[group].members > 0
    }

    // MARK: Groups

    private func findGroup(_ text: UnsafeRawBufferPointer) -> UInt32? {
        groupIndex.find(hash(text)) { groups[$0].text.equals(text) }
    }

    /// Walks the session's list and the group's ring of the session's kind in step, and stops with
    /// the shorter one, unless the session has many.
    private func find(_ list: List, _ group: UInt32) -> UInt32? {
        guard list.first != noIndex else { return nil }
        let session = members[list.first].session
        guard list.count <= SessionIndex.mostWalked else {
            return sessionIndex.find(session, group) {
                members[$0].session == session && members[$0].group == group
            }
        }
        let start = members[list.first].isOnline ? groups[group].online : groups[group].away
        guard start != noIndex else { return nil }
        var inGroup = start
        var inSession = list.first
        repeat {
            if members[inGroup].session == session { return inGroup }
            if members[inSession].group == group { return inSession }
            inGroup = members[inGroup].next
            inSession = members[inSession].nextInSession
        } while inGroup != start && inSession != noIndex
        return nil
    }

    private mutating func insertIntoIndex(_ list: List) {
        var index = list.first
        while index != noIndex {
            sessionIndex.insert(members[index].session, members[index].group, index)
            index = members[index].nextInSession
        }
    }

    private mutating func removeFromIndex(_ list: List) {
        var index = list.first
        while index != noIndex {
            sessionIndex.remove(members[index].session, members[index].group, index)
            index = members[index].nextInSession
        }
    }

    private mutating func addGroup(_ text: UnsafeRawBufferPointer) -> UInt32 {
        guard let filter = Self.filter(in: text) else {
            preconditionFailure("a shared subscription without a filter")
        }
        let group = groups.insert(
            Group(
                text: CompactBytes(text, pool: pool), online: noIndex, away: noIndex, members: 0,
                filter: SubscriptionTrie.List()))
        groupIndex.insert(hash(text), group)
        _ = trie.subscribe(group, &groups[group].filter, filter: filter, qos: .exactlyOnce)
        return group
    }

    private mutating func remove(_ member: UInt32) {
        let group = members[member].group
        unlink(member)
        members.remove(member)
        groups[group].members -= 1
        guard groups[group].members == 0 else { return }
        trie.removeAll(&groups[group].filter)
        groups[group].text.withBytes { groupIndex.remove(hash($0), group) }
        groups[group].text.destroy(in: pool)
        groups.remove(group)
    }

    /// Puts a member last in the turn of its ring.
    private mutating func link(_ member: UInt32) {
        let group = members[member].group
        let isOnline = members[member].isOnline
        let first = isOnline ? groups[group].online : groups[group].away
        guard first != noIndex else {
            members[member].next = member
            members[member].previous = member
            setFirst(member, group, isOnline)
            return
        }
        let last = members[first].previous
        members[member].next = first
        members[member].previous = last
        members[last].next = member
        members[first].previous = member
    }

    private mutating func unlink(_ member: UInt32) {
        let removed = members[member]
        let first = removed.isOnline ? groups[removed.group].online : groups[removed.group].away
        if removed.next == member {
            setFirst(noIndex, removed.group, removed.isOnline)
            return
        }
        members[removed.previous].next = removed.next
        members[removed.next].previous = removed.previous
        if first == member { setFirst(removed.next, removed.group, removed.isOnline) }
    }

    private mutating func setFirst(_ member: UInt32, _ group: UInt32, _ isOnline: Bool) {
        if isOnline {
            groups[group].online = member
        } else {
            groups[group].away = member
        }
    }
}
