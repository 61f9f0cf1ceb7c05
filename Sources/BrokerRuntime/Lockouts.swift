import Addresses
import BrokerAPI
import Structures

/// Wrong passwords of the last while, and who is locked out for them: a user name from one address,
/// and an address whatever the user, or without one. So who guesses locks out no client of another address.
///
/// A table of fixed size, made when the first wrong password comes. Each key may stand in four
/// places; a newcomer takes the place of the key that matters least. A check of a password takes
/// tens of milliseconds on one thread, so that a window brings fewer wrong ones than the table holds.
struct Lockouts {
    /// The limits as plain numbers.
    struct Limits: Equatable {
        /// Wrong passwords until a lock; `Int.max` means that there is none.
        private struct Bound: Equatable {
            let ofOthers: Int
            let ofLoopback: Int

            init(_ limit: BrokerLimits.AddressLimit, auto: Int) {
                switch limit {
                case .auto: (ofOthers, ofLoopback) = (auto, .max)
                case .off: (ofOthers, ofLoopback) = (.max, .max)
                case .number(let most): (ofOthers, ofLoopback) = (most, most)
                }
            }

            func most(_ isLoopback: Bool) -> Int { isLoopback ? ofLoopback : ofOthers }
        }

        private let pair: Bound
        private let address: Bound
        fileprivate let windowMilliseconds: UInt64
        fileprivate let lockMilliseconds: UInt64

        init(_ limits: BrokerLimits) {
            pair = Bound(limits.lockoutAttempts, auto: BrokerLimits.usualLockoutAttempts)
            address = Bound(
                limits.lockoutAttemptsPerAddress,
                auto: BrokerLimits.usualLockoutAttemptsPerAddress)
            windowMilliseconds = limits.lockoutWindow.wholeMilliseconds
            lockMilliseconds = limits.lockoutTime.wholeMilliseconds
        }

        fileprivate func most(_ scope: Scope, _ peer: IPAddress) -> Int {
            switch scope {
            case .pair: pair.most(peer.isLoopback)
            case .address: address.most(peer.isLoopback)
            }
        }
    }

    /// What wrong passwords are counted by.
    fileprivate enum Scope: UInt64 {
        case pair = 1
        case address = 2

        /// Clients that name no user, since their tokens do, are not one user: they share the count of
        /// their address alone.
        static func all(of userName: [UInt8]) -> [Scope] {
            userName.isEmpty ? [.address] : [.pair, .address]
        }

        var limit: Limit {
            switch self {
            case .pair: .lockoutAttempts
            case .address: .lockoutAttemptsPerAddress
            }
        }
    }

    private struct Entry {
        /// 0 while unused.
        var key: UInt64 = 0
        var network = IPNetwork(.unknown, length: 0)
        /// The beginning of the user name; `nil` for an address whatever the user.
        var userName: [UInt8]?
        var wrong = 0
        /// The first wrong password of the window.
        var since = MonotonicTime(milliseconds: 0)
        /// `nil` unless it is, or was, locked.
        var lockedUntil: MonotonicTime?

        func isLocked(at now: MonotonicTime) -> Bool { lockedUntil.map { $0 > now } ?? false }
    }

    /// A lock that has just begun.
    struct Beginning: Equatable {
        let limit: Limit
        /// `nil` for an address whatever the user.
        let userName: [UInt8]?
        let wrong: Int
    }

    private static let setCount = 2_048
    private static let ways = 4
    /// Bytes of a user name that are kept, to be shown.
    private static let mostText = 256

    /// The largest number of keys that are remembered.
    static var capacity: Int { setCount * ways }

    var limits: Limits
    private let hash: KeyedHash
    /// Empty until the first wrong password.
    private var entries: [Entry] = []
    /// Locks that have begun.
    private(set) var begun: UInt64 = 0

    init(_ limits: Limits, hash: KeyedHash) {
        self.limits = limits
        self.hash = hash
    }

    /// True until the first wrong password, so that others pay nothing.
    var isEmpty: Bool { entries.isEmpty }

    // MARK: Passwords

    /// The limit for which a user from an address is locked out; `nil` lets the password be checked.
    func lock(of userName: [UInt8], from peer: IPAddress, at now: MonotonicTime) -> Limit? {
        guard !isEmpty else { return nil }
        for scope in Scope.all(of: userName) where limits.most(scope, peer) != .max {
            guard let place = find(key(scope, userName, peer)), entries[place].isLocked(at: now)
            else { continue }
            return scope.limit
        }
        return nil
    }

    /// Counts a wrong password; returns the locks that begin with it.
    mutating func noteWrong(
        _ userName: [UInt8], from peer: IPAddress, at now: MonotonicTime
    ) -> [Beginning] {
        var beginnings: [Beginning] = []
        for scope in Scope.all(of: userName) {
            let most = limits.most(scope, peer)
            guard most != .max else { continue }
            if isEmpty { entries = Array(repeating: Entry(), count: Self.capacity) }
            let key = key(scope, userName, peer)
            let place = find(key) ?? replace(with: key, at: now)
            if entries[place].key != key || isOver(entries[place], at: now) {
                entries[place] = Entry(
                    key: key, network: peer.prefix,
                    userName: scope == .pair ? Array(userName.prefix(Self.mostText)) : nil,
                    since: now)
            }
            entries[place].wrong += 1
            guard entries[place].wrong >= most, !entries[place].isLocked(at: now) else { continue }
            entries[place].lockedUntil = now.advanced(byMilliseconds: limits.lockMilliseconds)
            begun += 1
            beginnings.append(
                Beginning(
                    limit: scope.limit, userName: entries[place].userName,
                    wrong: entries[place].wrong))
        }
        return beginnings
    }

    /// A right password ends the count of its user and address, and not that of the address: who
    /// has one account does not win free guesses at others by it.
    mutating func noteRight(_ userName: [UInt8], from peer: IPAddress) {
        guard !isEmpty, let place = find(key(.pair, userName, peer)) else { return }
        entries[place] = Entry()
    }

    // MARK: For operators

    /// Locks at the moment. `wallClockMs` is the UNIX time of `now` in milliseconds.
    func locks(at now: MonotonicTime, wallClockMs: Int64) -> [Lockout] {
        entries.compactMap { entry in
            guard let end = entry.lockedUntil, end > now else { return nil }
            return Lockout(
                userName: entry.userName.map { String(decoding: $0, as: UTF8.self) },
                address: entry.network.text, wrongPasswords: entry.wrong,
                untilMs: wallClockMs + Int64(clamping: end.milliseconds(since: now)))
        }
    }

    func count(at now: MonotonicTime) -> Int {
        entries.reduce(0) { $0 + ($1.isLocked(at: now) ? 1 : 0) }
    }

    /// Forgets wrong passwords and locks of a network's addresses, or all; returns how many locks
    /// that ended.
    mutating func clear(_ network: IPNetwork?, at now: MonotonicTime) -> Int {
        var ended = 0
        for place in entries.indices where entries[place].key != 0 {
            let own = entries[place].network
            if let network, !network.contains(own.first), !own.contains(network.first) { continue }
            if entries[place].isLocked(at: now) { ended += 1 }
            entries[place] = Entry()
        }
        return ended
    }

    // MARK: The table

    private func key(_ scope: Scope, _ userName: [UInt8], _ peer: IPAddress) -> UInt64 {
        let first = peer.prefix.first
        let numbers = (first.high, first.low, UInt64(first.family.rawValue))
        let ofAddress = withUnsafeBytes(of: numbers) { hash($0, salt: scope.rawValue) }
        switch scope {
        case .address: return max(1, ofAddress)
        case .pair: return max(1, userName.withUnsafeBytes { hash($0, salt: ofAddress) })
        }
    }

    private func places(of key: UInt64) -> Range<Int> {
        let first = Int(key % UInt64(Self.setCount)) * Self.ways
        return first..<first + Self.ways
    }

    private func find(_ key: UInt64) -> Int? {
        isEmpty ? nil : places(of: key).first { entries[$0].key == key }
    }

    /// True when nothing that the entry tells counts any more.
    private func isOver(_ entry: Entry, at now: MonotonicTime) -> Bool {
        if let end = entry.lockedUntil { return end <= now }
        return now.milliseconds(since: entry.since) >= limits.windowMilliseconds
    }

    /// The place that a new key takes: one that is over, or the one with the fewest wrong passwords,
    /// and a locked one only among locked ones.
    private func replace(with key: UInt64, at now: MonotonicTime) -> Int {
        let places = places(of: key)
        func weight(_ place: Int) -> Int {
            let entry = entries[place]
            if entry.key == 0 || isOver(entry, at: now) { return 0 }
            return entry.isLocked(at: now) ? .max : entry.wrong
        }
        return places.min { weight($0) < weight($1) } ?? places.lowerBound
    }
}
