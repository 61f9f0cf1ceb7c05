import BrokerAPI
import Structures
import Transport

/// Decides whether a newcomer may stay, by what its address has already; and how fast newcomers come in
/// at all.
///
/// It holds some 8 bytes for each address that has a connection, and a fixed table of how fast addresses
/// connect. A connection keeps the key of its address; 0 stands for one that was not counted.
struct Admission: ~Copyable {
    /// What a newcomer's address has had enough of.
    enum Verdict: Equatable {
        /// It may stay; ``leave(_:)`` takes the key back.
        case admitted(key: UInt32)
        case refused(Limit)
    }

    /// What one address may have, and how fast all together come, as numbers that cost nothing to ask.
    struct Limits {
        /// For addresses of other machines, and for this one's; `Int.max` is no limit.
        struct Bound {
            let ofOthers: Int
            let ofLoopback: Int

            init(_ limit: BrokerLimits.AddressLimit, of whole: Int?) {
                ofOthers = limit.bound(of: whole, isLoopback: false) ?? .max
                ofLoopback = limit.bound(of: whole, isLoopback: true) ?? .max
            }

            func most(_ isLoopback: Bool) -> Int { isLoopback ? ofLoopback : ofOthers }
        }

        let connections: Bound
        let handshakes: Bound
        let rate: Bound
        /// Of all together in a second; `nil` is no limit.
        let connectRate: Int?

        init(_ limits: BrokerLimits) {
            connections = Bound(limits.connectionsPerAddress, of: limits.maxConnections)
            handshakes = Bound(limits.handshakesPerAddress, of: limits.maxHandshakes)
            rate = Bound(limits.connectRatePerAddress, of: limits.connectRate)
            connectRate = limits.connectRate
        }
    }

    var limits: Limits
    private let hash: KeyedHash
    private var connections = KeyCounts()
    private var handshakes = KeyCounts()
    private var rates = KeyRates()
    private var tokens = TokenBucket()

    init(_ limits: Limits, hash: KeyedHash) {
        self.limits = limits
        self.hash = hash
    }

    /// Judges a peer whose address is known, and counts it if it may stay; `isSecured` says that its TLS
    /// handshake begins.
    mutating func admit(
        _ peer: PeerAddress, isSecured: Bool, now: MonotonicTime
    ) -> Verdict {
        let key = peer.key(hash)
        let isLoopback = peer.isLoopback
        guard connections[key] < limits.connections.most(isLoopback) else {
            return .refused(.connectionsPerAddress)
        }
        guard !isSecured || handshakes[key] < limits.handshakes.most(isLoopback) else {
            return .refused(.handshakesPerAddress)
        }
        // Last, so that nothing else refuses what has taken a token.
        let rate = limits.rate.most(isLoopback)
        guard rate == .max || rates.take(key, rate: rate, now: now) else {
            return .refused(.connectRatePerAddress)
        }
        connections.add(key)
        if isSecured { handshakes.add(key) }
        return .admitted(key: key)
    }

    /// A connection with this key is closed.
    mutating func leave(_ key: UInt32) {
        if key != 0 { connections.remove(key) }
    }

    /// A TLS handshake with this key is over.
    mutating func endHandshake(_ key: UInt32) {
        if key != 0 { handshakes.remove(key) }
    }

    /// Takes the right to accept one connection; false when it is not there yet.
    mutating func takeToken(now: MonotonicTime) -> Bool {
        guard let rate = limits.connectRate else { return true }
        return tokens.take(rate: rate, now: now)
    }

    /// Puts back the right that was taken for a connection which did not come in.
    mutating func putTokenBack() { tokens.putBack() }

    /// When it is worth accepting again: a hundredth of a second's connections at a time, so that the
    /// pauses of a high rate cost little.
    mutating func nextToken(now: MonotonicTime) -> MonotonicTime {
        guard let rate = limits.connectRate else { return now }
        return tokens.time(of: max(1, rate / 100), rate: rate, now: now)
    }

    /// Addresses that have connections.
    var addressCount: Int { connections.keyCount }
}

extension BrokerLimits.AddressLimit {
    /// How much one address may have of something of which all together may have `whole`; `nil` is no
    /// bound. What a number says binds everybody; of its own accord nothing binds this machine, where one
    /// address may be a proxy's, and so all clients'.
    func bound(of whole: Int?, isLoopback: Bool) -> Int? {
        switch self {
        case .auto: isLoopback ? nil : whole.map { max(1, $0 / 2) }
        case .off: nil
        case .number(let most): most
        }
    }
}
