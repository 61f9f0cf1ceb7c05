import MQTTCodec
import Structures

/// Subscriptions `$share/<group>/<filter>`: a message goes to one member of each group whose filter
/// matches.
///
/// The form is that of MQTT 5.0, section 4.8.2, which many brokers also offer to 3.1.1 clients. A
/// group is named by its whole text: the same name with another filter is another group. Connected
/// members stand in one ring and offline members in another, so that choosing one takes constant
/// time however many are offline.
public struct SharedSubscriptions: ~Copyable {
    /// Never read. It makes the type address-only: methods that do not mutate get its address, where the
    /// compiler would copy the whole struct before each call that it does not inline.
    private let addressOnly: any Sendable = ()

    struct Group: BitwiseCopyable {
        /// The whole text of the subscription, `$share/` included.
        var text: CompactBytes
        /// The connected member whose turn is next; ``noIndex`` for none.
        var online: UInt32
        /// The offline member whose turn is next; ``noIndex`` for none.
        var offline: UInt32
        var members: UInt32
        /// The group's filter in the trie of all groups.
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

    /// The memberships of one session.
    public struct List: BitwiseCopyable {
        var first: UInt32
        public fileprivate(set) var count: UInt32

        public init() {
            first = noIndex
            count = 0
        }
    }

    /// A member that a message may go to.
    public struct Choice: BitwiseCopyable {
        public var session: UInt32
        public var group: UInt32
        public var qos: QoS
    }

    private var groups = Slab<Group>()
    private var groupIndex = HashIndex()
    private var members = Slab<Member>()
    private(set) var sessionIndex: SessionIndex
    /// The filters of all groups. A group takes the place of a session in this trie.
    private var trie: SubscriptionTrie
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

    /// True for a filter that asks for a shared subscription, well-formed or not.
    public static func isShared(_ filter: UnsafeRawBufferPointer) -> Bool {
        filter.starts(with: "$share/".utf8) || filter.elementsEqual("$share".utf8)
    }

    /// The topic filter behind the group's name. `nil` unless the text is
    /// `$share/<group>/<filter>`, where both have at least one character and the group's name has
    /// no `+` or `#`.
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

    /// Adds the session to a group, or changes its QoS there. ``filter(in:)`` must have accepted
    /// `text`.
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

    /// Removes the session from a group and returns the group; `nil` when it was not a member. The
    /// returned index is valid until the next change.
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

    /// Removes a session from all its groups.
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

    /// The session's client has connected, or gone offline.
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

    /// The shared subscriptions of a session as the client wrote them, with their QoS.
    public func subscriptions(of list: List) -> [(filter: [UInt8], qos: QoS)] {
        var result: [(filter: [UInt8], qos: QoS)] = []
        var index = list.first
        while index != noIndex {
            result.append((groups[members[index].group].text.array, members[index].qos))
            index = members[index].nextInSession
        }
        return result
    }

    /// The group with this text; `nil` when it has no members.
    public func group(_ text: UnsafeRawBufferPointer) -> UInt32? { findGroup(text) }

    /// True when the session is a member of the group.
    public func contains(_ list: List, _ group: UInt32) -> Bool { find(list, group) != nil }

    /// The text of a group, valid while the group has members.
    public func text(of group: UInt32) -> CompactBytes { groups[group].text }

    // MARK: Choosing

    /// The groups whose filter matches a topic; valid until the next change or call.
    public mutating func match(
        _ topic: UnsafeRawBufferPointer
    ) -> UnsafeBufferPointer<SubscriptionTrie.Match> {
        trie.match(topic)
    }

    /// The connected or offline member whose turn is next; `nil` when the group has none of that
    /// kind.
    public func first(_ group: UInt32, isOnline: Bool) -> UInt32? {
        let first = isOnline ? groups[group].online : groups[group].offline
        return first == noIndex ? nil : first
    }

    /// The member whose turn follows that of `member` in its ring.
    public func next(_ member: UInt32) -> UInt32 { members[member].next }

    public subscript(member: UInt32) -> Choice {
        Choice(
            session: members[member].session, group: members[member].group,
            qos: members[member].qos)
    }

    /// Gives the turn to the member behind this one, which has got the message.
    public mutating func passTurn(_ member: UInt32) {
        setFirst(members[member].next, members[member].group, members[member].isOnline)
    }

    /// True while the group has members.
    public func hasMembers(_ group: UInt32) -> Bool {
        group < groups.endIndex && groups[group].members > 0
    }

    // MARK: Groups

    private func findGroup(_ text: UnsafeRawBufferPointer) -> UInt32? {
        groupIndex.find(hash(text)) { groups[$0].text.equals(text) }
    }

    /// Finds a session's membership in a group. Walks the session's list and a ring of the group in
    /// step, and stops with the shorter one. For a session with many memberships ``SessionIndex``
    /// answers.
    private func find(_ list: List, _ group: UInt32) -> UInt32? {
        guard list.first != noIndex else { return nil }
        let session = members[list.first].session
        guard list.count <= SessionIndex.mostWalked else {
            return sessionIndex.find(session, group) {
                members[$0].session == session && members[$0].group == group
            }
        }
        let start = members[list.first].isOnline ? groups[group].online : groups[group].offline
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
                text: CompactBytes(text, pool: pool), online: noIndex, offline: noIndex, members: 0,
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

    /// Puts a member at the end of its ring.
    private mutating func link(_ member: UInt32) {
        let group = members[member].group
        let isOnline = members[member].isOnline
        let first = isOnline ? groups[group].online : groups[group].offline
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
        let first = removed.isOnline ? groups[removed.group].online : groups[removed.group].offline
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
            groups[group].offline = member
        }
    }
}
