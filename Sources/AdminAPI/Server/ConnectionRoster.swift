import Addresses

/// The bounds on a listener's connections.
struct ConnectionPlaces: Equatable {
    var all: Int
    /// Places that callers leave to strangers; fewer than all.
    var strangers: Int
    /// Places for callers from one address; 1 or more.
    var callersPerAddress: Int
}

/// Decides which connections of a listener stay open when there are too many; performs no I/O and
/// reads no clock.
///
/// A connection is a stranger's until one of its requests shows a good token. Then it is a caller's,
/// and makes room for other callers only, and only between two requests:
///
/// - A newcomer always finds a place while there are strangers. The address with the most of them
///   gives one up, its oldest; so an address that opens many connections displaces its own.
/// - Callers never take the ``ConnectionPlaces/strangers`` places, through which all newcomers come,
///   health checks among them. One address has a share of the callers' places.
struct ConnectionRoster<ID: Hashable> {
    private enum Standing: Equatable {
        case stranger
        /// A caller with a request that is being read, carried out or answered.
        case busy
        /// A caller between two requests, since the event of that number.
        case idle(since: Int)

        var isCaller: Bool { self != .stranger }
    }

    private struct Entry {
        var address: IPNetwork
        /// The number of the event that let it in.
        var since: Int
        var standing = Standing.stranger
        /// True once a request has come before the one ahead of it was answered.
        var pipelines = false
    }

    private let places: ConnectionPlaces
    private var entries: [ID: Entry] = [:]
    private var events = 0
    private var callers = 0

    init(_ places: ConnectionPlaces) {
        precondition(
            places.all > places.strangers && places.callersPerAddress > 0,
            "nobody could be served within \(places)")
        self.places = places
    }

    enum OnRequest: Equatable {
        /// It has a place; the connection that made room for it is to be closed.
        case admit(displacing: ID?)
        /// Every place that it may have is taken by a caller with a request under way.
        case refuse
    }

    /// Connections that are open.
    var count: Int { entries.count }

    /// A connection has been accepted.
    mutating func admit(_ id: ID, from address: IPNetwork) -> OnRequest {
        precondition(entries[id] == nil, "a connection is let in twice")
        var displaced: ID?
        if entries.count >= places.all {
            displaced = oldestStranger() ?? longestIdle { _ in true }
            guard let displaced else { return .refuse }
            remove(displaced)
        }
        entries[id] = Entry(address: address, since: nextEvent())
        return .admit(displacing: displaced)
    }

    /// A request of the connection has shown a good token.
    mutating func trust(_ id: ID) -> OnRequest {
        // One that has made room meanwhile needs no place.
        guard let entry = entries[id], entry.standing == .stranger else {
            return .admit(displacing: nil)
        }
        let address = entry.address
        let ofAddress = entries.values.count { $0.address == address && $0.standing.isCaller }
        var displaced: ID?
        if ofAddress >= places.callersPerAddress && !address.isLoopback {
            displaced = longestIdle { $0.address == address }
            guard displaced != nil else { return .refuse }
        } else if callers >= places.all - places.strangers {
            displaced = longestIdle { _ in true }
            guard displaced != nil else { return .refuse }
        }
        if let displaced { remove(displaced) }
        entries[id]?.standing = .busy
        callers += 1
        return .admit(displacing: displaced)
    }

    /// A request of the connection has shown no good token where one is needed.
    mutating func distrust(_ id: ID) {
        guard entries[id]?.standing.isCaller == true else { return }
        entries[id]?.standing = .stranger
        callers -= 1
    }

    /// Whether a request of the connection is under way.
    mutating func setBusy(_ id: ID, _ isBusy: Bool) {
        switch (entries[id]?.standing, isBusy) {
        case (.idle, true): entries[id]?.standing = .busy
        case (.busy, false):
            let now = nextEvent()
            entries[id]?.standing = .idle(since: now)
        case (nil, _), (.stranger, _), (.busy, true), (.idle, false): break
        }
    }

    /// A request has come before the one ahead of it was answered.
    mutating func notePipelining(_ id: ID) {
        entries[id]?.pipelines = true
    }

    /// True for a stranger that sends requests without waiting for answers. One burst of them holds
    /// more work than others should wait for.
    func mustWait(_ id: ID) -> Bool {
        guard let entry = entries[id] else { return false }
        return entry.pipelines && entry.standing == .stranger
    }

    /// The connection has been closed.
    mutating func remove(_ id: ID) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        if entry.standing.isCaller { callers -= 1 }
    }

    private mutating func nextEvent() -> Int {
        events += 1
        return events
    }

    /// The oldest stranger of the address with most strangers, or of several such addresses.
    private func oldestStranger() -> ID? {
        var counts: [IPNetwork: Int] = [:]
        for entry in entries.values where entry.standing == .stranger {
            counts[entry.address, default: 0] += 1
        }
        let most = counts.values.max()
        return entries.filter { $0.value.standing == .stranger && counts[$0.value.address] == most }
            .min { $0.value.since < $1.value.since }?.key
    }

    private func longestIdle(where fits: (Entry) -> Bool) -> ID? {
        var longest: (id: ID, since: Int)?
        for (id, entry) in entries where fits(entry) {
            guard case .idle(let since) = entry.standing else { continue }
            if longest.map({ since < $0.since }) ?? true { longest = (id, since) }
        }
        return longest?.id
    }
}
