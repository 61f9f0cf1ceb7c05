import MQTTCodec

/// A topic filter that the app wants, or wants no longer, and how far the broker knows.
package struct Subscription: Hashable, Sendable {
    package enum State: Hashable, Sendable {
        /// The broker has never granted it.
        case wanted
        /// The broker may grant less than the app asks for.
        case granted(QoS)
        /// The broker granted it in a session that is lost.
        case lost
        /// The app has unsubscribed, and the broker has not confirmed.
        case unwanted

        package var isGranted: Bool {
            if case .granted = self { true } else { false }
        }
    }

    package var filter: [UInt8]
    /// The highest that the app asks for.
    package var qos: QoS
    package var state: State
    /// Holes in the sequences of what it brings are losses. Off for one that brings a part only.
    package var countsLosses = true

    package init(filter: [UInt8], qos: QoS, state: State, countsLosses: Bool = true) {
        self.countsLosses = countsLosses
        self.filter = filter
        self.qos = qos
        self.state = state
    }
}

/// The client's subscriptions, in the order in which the app asked for them.
package struct SubscriptionTable: Equatable, Sendable {
    package private(set) var all: [Subscription] = []
    /// Bytes of all topic filters.
    package private(set) var bytes = 0

    package init() {}

    /// False if every subscription that brings this topic brings a part of its messages only.
    func countsLosses(ofTopic topic: [UInt8]) -> Bool {
        guard all.contains(where: { !$0.countsLosses }) else { return true }
        let matching = all.filter { TopicMatch.covers($0.filter, topic) }
        return matching.isEmpty || matching.contains(where: \.countsLosses)
    }

    package subscript(filter: [UInt8]) -> Subscription? { all.first { $0.filter == filter } }

    package mutating func set(_ subscription: Subscription) {
        if let index = all.firstIndex(where: { $0.filter == subscription.filter }) {
            all[index] = subscription
        } else {
            all.append(subscription)
            bytes += subscription.filter.count
        }
    }

    package mutating func remove(_ filter: [UInt8]) {
        guard let index = all.firstIndex(where: { $0.filter == filter }) else { return }
        bytes -= filter.count
        all.remove(at: index)
    }

    /// The broker has no session: nothing is granted, and nothing is left to unsubscribe from.
    package mutating func loseSession() {
        all.removeAll { $0.state == .unwanted }
        bytes = all.reduce(0) { $0 + $1.filter.count }
        askAgain()
    }

    /// What the broker has granted is asked for again.
    package mutating func askAgain() {
        for index in all.indices where all[index].state.isGranted { all[index].state = .lost }
    }
}
