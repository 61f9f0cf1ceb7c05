import Reactor
import Structures

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

    private let hash: KeyedHash
    private var connections = KeyCounts()
    private var handshakes = KeyCounts()
    private var rates = KeyRates()
    private var tokens = TokenBucket()

    init(hash: KeyedHash) { self.hash = hash }

    /// Judges a peer whose address is known, and counts it if it may stay; `isSecured` says that its TLS
    /// handshake begins.
    mutating func admit(
        _ peer: PeerAddress, isSecured: Bool, _ settings: BrokerSettings, now: MonotonicTime
    ) -> Verdict {
        let key = peer.key(hash)
        let isLoopback = peer.isLoopback
        if let most = settings.connectionsPerAddress.bound(
            of: settings.maxConnections, isLoopback: isLoopback), connections[key] >= most
        {
            return .refused(.connectionsPerAddress)
        }
        if isSecured,
            let most = settings.handshakesPerAddress.bound(
                of: settings.maxHandshakes, isLoopback: isLoopback), handshakes[key] >= most
        {
            return .refused(.handshakesPerAddress)
        }
        // Last, so that nothing else refuses what has taken a token.
        if let rate = settings.connectRatePerAddress.bound(
            of: settings.connectRate, isLoopback: isLoopback),
            !rates.take(key, rate: rate, now: now)
        {
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
    mutating func takeToken(_ settings: BrokerSettings, now: MonotonicTime) -> Bool {
        guard let rate = settings.connectRate else { return true }
        return tokens.take(rate: rate, now: now)
    }

    /// Puts back the right that was taken for a connection which did not come in.
    mutating func putTokenBack() { tokens.putBack() }

    /// When it is worth accepting again: a hundredth of a second's connections at a time, so that the
    /// pauses of a high rate cost little.
    mutating func nextToken(_ settings: BrokerSettings, now: MonotonicTime) -> MonotonicTime {
        guard let rate = settings.connectRate else { return now }
        return tokens.time(of: max(1, rate / 100), rate: rate, now: now)
    }

    /// Addresses that have connections.
    var addressCount: Int { connections.keyCount }
}

extension BrokerSettings.AddressLimit {
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
