import MQTTCodec

/// All that the client keeps across restarts of the program.
///
/// It changes only by ``apply(_:)``, while the program runs as well as when the log is read again:
/// so what a restart finds is what had been there.
package struct StoredState: Equatable, Sendable {
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

    package init() {}

    package mutating func apply(_ record: StoredRecord) {
        switch record {
        case .connecting: isConnecting = true
        case .sessionStarted:
            (hasSession, isConnecting) = (true, false)
            outbox.removeReleased()
            received = [:]
            subscriptions.loseSession()
        case .sessionResumed(let isCertain):
            (hasSession, isConnecting) = (true, false)
            if !isCertain { subscriptions.askAgain() }
        case .queued(let message): outbox.append(message)
        case .released(let key): outbox.release(key)
        case .finished(let key): outbox.remove(key)
        case .received(let identifier, let digest): received[identifier] = digest
        case .receivedReleased(let identifier): received[identifier] = nil
        case .subscription(let subscription): subscriptions.set(subscription)
        case .subscriptionForgotten(let filter): subscriptions.remove(filter)
        case .sequence(let numbers): channels.insert(numbers)
        case .lossTold(let channel, let upTo, let count):
            channels.noteLoss(channel, upTo: upTo, count: count)
        case .channel(let channel, let window): channels.replace(channel, window)
        case .messageName(let name): recentNames.insert(name)
        case .rhythm(let label, let rhythm): rhythms.set(label, rhythm)
        case .counters(let counters): self.counters = counters
        }
    }

    /// The fewest records that lead from nothing to this state.
    package var records: [StoredRecord] {
        var records: [StoredRecord] = hasSession ? [.sessionResumed(isCertain: true)] : []
        if isConnecting { records.append(.connecting) }
        records += outbox.messages.map { .queued($0) }
        records += received.sorted { $0.key.rawValue < $1.key.rawValue }
            .map { .received($0.key, digest: $0.value) }
        records += subscriptions.all.map { .subscription($0) }
        records += channels.windows.map { .channel($0.channel, $0.window) }
        records += recentNames.all.map { .messageName($0) }
        records += rhythms.all.map { .rhythm($0.label, $0.rhythm) }
        records.append(.counters(counters))
        return records
    }
}
