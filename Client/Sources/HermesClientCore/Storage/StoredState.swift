import MQTTCodec

/// All that the client keeps across restarts of the program.
///
/// It changes only by ``apply(_:)``, while the program runs as well as when the log is read again:
/// so what a restart finds is what had been there.
package struct StoredState: Equatable, Sendable {
    /// The client identifier whose state this is; `nil` for nothing, and for a file of an earlier
    /// version.
    package private(set) var owner: [UInt8]?
    /// A broker has once accepted a connection of this client with a session.
    package private(set) var hasSession = false
    /// CONNECT has left, and no CONNACK has been noted since.
    package private(set) var isConnecting = false
    package private(set) var outbox = Outbox()
    /// Messages of QoS 2 that the app has acknowledged and whose PUBREL has not come, with the
    /// digest of their content.
    package private(set) var received: [PacketIdentifier: UInt64] = [:]
    package private(set) var subscriptions = SubscriptionTable()
    package private(set) var channels = ChannelTable()
    package private(set) var recentNames = RecentIdentifiers()
    package private(set) var rhythms = RhythmTable()
    package private(set) var counters = ClientCounters()
    /// When the broker last refused the client's report, UNIX time in milliseconds.
    package private(set) var reportRefusedAt: Int64?

    package init() {}

    package mutating func apply(_ record: StoredRecord) {
        switch record {
        case .owner(let identifier): owner = identifier
        case .connecting: isConnecting = true
        case .sessionStarted:
            if hasSession { counters.lostSessions &+= 1 }
            beginSession()
            hasSession = true
        case .cleanSessionStarted:
            beginSession()
            hasSession = false
        case .sessionResumed(let isCertain):
            counters.connects &+= 1
            (hasSession, isConnecting) = (true, false)
            if !isCertain { subscriptions.askAgain() }
        case .queued(let message): outbox.append(message)
        case .released(let key): outbox.release(key)
        case .finished(let key):
            counters.published &+= 1
            outbox.remove(key)
        case .discarded(let key): outbox.remove(key)
        case .heldBack(let key): outbox.holdBack(key)
        case .retried(let key): outbox.retry(key)
        case .reportRefused(let at): reportRefusedAt = at
        case .received(let identifier, let digest): received[identifier] = digest
        case .receivedReleased(let identifier): received[identifier] = nil
        case .subscription(let subscription): subscriptions.set(subscription)
        case .subscriptionForgotten(let filter): subscriptions.remove(filter)
        case .sequence(let numbers): channels.insert(numbers)
        case .lossTold(let channel, let upTo, let count):
            counters.losses &+= count
            channels.noteLoss(channel, upTo: upTo, count: count)
        case .baselineForgotten(let channel): channels.forgetBaseline(channel)
        case .channel(let channel, let window): channels.replace(channel, window)
        case .messageName(let name): recentNames.insert(name)
        case .rhythm(let label, let rhythm): rhythms.set(label, rhythm)
        case .counters(let counters): self.counters = counters
        case .counted(let received, let duplicates):
            counters.received &+= UInt64(received)
            counters.duplicates &+= UInt64(duplicates)
        }
    }

    private mutating func beginSession() {
        counters.connects &+= 1
        counters.published &+= UInt64(outbox.messages.count(where: \.isReleased))
        isConnecting = false
        outbox.removeReleased()
        received = [:]
        subscriptions.loseSession()
    }

    /// Some changes are missing: what the broker has granted, and which session it has, is not sure.
    mutating func noteDamage() {
        subscriptions.askAgain()
        isConnecting = true
    }

    /// The fewest records that lead from nothing to this state.
    package var records: [StoredRecord] {
        var records: [StoredRecord] = owner.map { [.owner($0)] } ?? []
        if hasSession { records.append(.sessionResumed(isCertain: true)) }
        if isConnecting { records.append(.connecting) }
        for message in outbox.held { records += [.queued(message), .heldBack(message.key)] }
        records += outbox.messages.map { .queued($0) }
        if let reportRefusedAt { records.append(.reportRefused(at: reportRefusedAt)) }
        records += received.sorted { $0.key.rawValue < $1.key.rawValue }
            .map { .received($0.key, digest: $0.value) }
        records += subscriptions.all.map { .subscription($0) }
        records += channels.windows.map { .channel($0.channel, $0.window) }
        records += recentNames.all.map { .messageName($0) }
        records += rhythms.all.map { .rhythm($0.label, $0.rhythm) }
        // Last: the records before have counted what is counted here.
        records.append(.counters(counters))
        return records
    }
}
