import MQTTCodec
import MQTTCore
import Structures

/// The members of shared groups that get a message.
///
/// Very many groups have their members chosen in slices, ahead of the delivery, while subscriptions,
/// connections and rights change. A copy of QoS 0, which nothing stores, is delivered at once then. What
/// was chosen ahead is looked at once more at the delivery, which takes a few comparisons: a member that
/// has left, gone offline or got other rights is replaced then.
struct GroupChoices: ~Copyable {
    /// What was chosen for a group ahead of the delivery.
    struct Ahead: BitwiseCopyable {
        /// The choice is valid while this is ``stamp``.
        var stamp: UInt32 = 0
        var member: UInt32 = noIndex
        /// See ``SharedSubscriptions/joined(_:)``.
        var joined: UInt32 = 0
        /// The group's ``SharedSubscriptions/version(of:)`` when no member was found.
        var version: UInt32 = 0
        var isOnline = false
        var choice = SharedSubscriptions.Decision.offline
        /// The ``message`` whose copy the group has got ahead.
        var delivered: UInt32 = 0
    }

    /// With more sessions of other rights than these, what was chosen ahead is chosen anew.
    private static var mostChanged: Int { 4_096 }

    /// Members that the groups of one message ask together, if they are not chosen in slices, ...
    private static var mostSearched: Int { 4_096 }
    /// ... and those of each ring that every group may ask in any case.
    private static var leastSearched: Int { 8 }

    /// The members that the last message was given to.
    private var given = GrowableBuffer<SharedSubscriptions.Choice>()
    /// By group.
    private var ahead = GrowableBuffer<Ahead>()
    private var stamp: UInt32 = 0
    /// Tells the messages apart for which copies are delivered ahead.
    private var message: UInt32 = 0
    /// The message that members are chosen ahead for: its topic and QoS.
    private var topic = GrowableBuffer<UInt8>()
    private var qos = QoS.atMostOnce
    private var isActive = false
    /// The publisher of the message, if its copies are delivered ahead; `nil` if members are only chosen.
    private var sender: MatchPublisher?
    /// The place of the next group among those that match.
    private var next = 0
    /// True when no group is left, ...
    private var isComplete = false
    /// ... and when for some of them a member was chosen whose copy is delivered later.
    private var hasKept = false
    /// Sessions whose rights have changed since.
    private var changed: Set<UInt32> = []
    /// Members that were asked since ``takeSteps()``.
    var steps = 0
    /// ``steps`` when the message's groups have asked ``mostSearched``.
    private var searchEnd = 0

    mutating func takeSteps() -> Int {
        defer {
            searchEnd -= steps
            steps = 0
        }
        return steps
    }

    // MARK: The members of one message

    /// Valid until the next ``begin()``.
    var members: UnsafeBufferPointer<SharedSubscriptions.Choice> { given.contents }

    mutating func begin() {
        given.removeAll()
        steps += 1
        beginSearch()
    }

    /// Members of each ring of the next group that may be asked: fewer when the groups before have
    /// asked many, because all of theirs are full.
    var mostAsked: Int {
        min(SharedSubscriptions.mostSearched, max(Self.leastSearched, (searchEnd - steps) / 2))
    }

    /// Lets one group that is asked by itself ask as many members as those of a message together.
    mutating func beginSearch() { searchEnd = steps + Self.mostSearched }

    mutating func give(_ choice: SharedSubscriptions.Choice) { given.append(choice) }

    mutating func give(_ choice: SharedSubscriptions.Choice, at place: Int) {
        given[place] = choice
    }

    // MARK: Ahead of the delivery

    /// True when members are chosen ahead for such a message.
    func isAhead(_ name: UnsafeRawBufferPointer, _ qos: QoS) -> Bool {
        isActive && self.qos == qos
            && UnsafeRawBufferPointer(topic.contents).elementsAreEqual(to: name)
    }

    /// True when a publisher's message may take what was chosen ahead: all of it if members were only
    /// chosen, and only its own if copies were delivered.
    func isFor(_ publisher: MatchPublisher?) -> Bool { sender == nil || sender == publisher }

    /// Begins to choose members ahead, unless that is under way. `sender` is whose message it is, if its
    /// copies are delivered ahead.
    mutating func beginAhead(
        _ name: UnsafeRawBufferPointer, _ qos: QoS, sender: MatchPublisher?
    ) {
        guard !isAhead(name, qos) else {
            if sender != nil { self.sender = sender }
            return
        }
        isActive = true
        self.sender = sender
        self.qos = qos
        topic.removeAll()
        for byte in name { topic.append(byte) }
        message &+= 1
        if message == 0 {
            ahead.removeAll()
            message = 1
        }
        hasKept = false
        restart()
    }

    /// Chooses all of them anew, because rights have changed.
    mutating func restart() {
        guard isActive else { return }
        next = 0
        isComplete = false
        changed.removeAll()
        stamp &+= 1
        if stamp == 0 {
            // After 2^32 messages the stamps repeat, so the old choices must go.
            ahead.removeAll()
            stamp = 1
        }
    }

    mutating func endAhead() {
        isActive = false
        changed.removeAll()
    }

    /// Drops what was chosen ahead while groups are left, because its publisher has gone.
    mutating func endUnfinished(_ shared: borrowing SharedSubscriptions) {
        if isActive, next < shared.slicedCount { endAhead() }
    }

    /// Notes that a session has got other rights.
    mutating func noteRights(of session: UInt32) {
        guard isActive else { return }
        changed.insert(session)
        // Groups that have their copy keep it.
        if changed.count > Self.mostChanged { restart() }
    }

    /// The next group for which a member has to be chosen ahead; `nil` when none is left.
    mutating func nextGroup(_ shared: borrowing SharedSubscriptions) -> UInt32? {
        beginSearch()
        while next < shared.slicedCount {
            next += 1
            if let group = shared.slicedGroup(at: next - 1), !isDelivered(to: group) {
                return group
            }
        }
        isComplete = true
        return nil
    }

    /// True when every group that matches the topic has got its copy, so that none needs to be looked
    /// at for the rest of the delivery.
    func areAllDelivered(of name: UnsafeRawBufferPointer) -> Bool {
        isComplete && !hasKept && isAhead(name, .atMostOnce)
    }

    /// Notes that a group has got its copy of the message, or lost it.
    mutating func noteDelivered(to group: UInt32) {
        while ahead.count <= Int(group) { ahead.append(Ahead()) }
        ahead[Int(group)].delivered = message
    }

    /// True when the group has got its copy of the message, whatever has changed since.
    func isDelivered(to group: UInt32) -> Bool {
        isActive && Int(group) < ahead.count && ahead[Int(group)].delivered == message
    }

    /// Keeps what was chosen for a group.
    mutating func keep(
        _ choice: SharedSubscriptions.Decision, of group: UInt32,
        _ shared: borrowing SharedSubscriptions
    ) {
        hasKept = true
        while ahead.count <= Int(group) { ahead.append(Ahead()) }
        var entry = Ahead(stamp: stamp, version: shared.version(of: group), choice: choice)
        switch choice {
        case .member(let chosen): entry.member = chosen.member
        case .full(let member): entry.member = member
        case .withheld, .offline: break
        }
        if entry.member != noIndex {
            entry.joined = shared.joined(entry.member)
            entry.isOnline = shared.isOnline(entry.member)
        }
        ahead[Int(group)] = entry
    }

    /// What was chosen for a group ahead, if it still holds.
    func aheadChoice(
        of group: UInt32, _ shared: borrowing SharedSubscriptions, isConnected: (UInt32) -> Bool,
        isEnding: (UInt32) -> Bool
    ) -> SharedSubscriptions.Decision? {
        guard Int(group) < ahead.count, ahead[Int(group)].stamp == stamp else { return nil }
        let entry = ahead[Int(group)]
        guard entry.member != noIndex else {
            // Nobody has come who might get it.
            return changed.isEmpty && entry.version == shared.version(of: group)
                ? entry.choice : nil
        }
        guard shared.contains(member: entry.member, joined: entry.joined, in: group) else {
            return nil
        }
        let choice = shared[entry.member]
        guard !changed.contains(choice.session) else { return nil }
        let holds =
            entry.isOnline
            ? isConnected(choice.session)
            : shared.first(group, isOnline: true) == nil && !isEnding(choice.session)
                && min(qos, choice.qos) != .atMostOnce
        guard holds else { return nil }
        if case .full = entry.choice { return entry.choice }
        return .member(choice)
    }
}
