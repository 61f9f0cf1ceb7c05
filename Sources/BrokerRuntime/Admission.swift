import Addresses
import BrokerAPI
import Structures
import Transport

/// Decides whether a new connection may stay, by limits per address and by the total connect rate.
///
/// It takes about 8 bytes for each connected address, and a fixed table of connect rates. A
/// connection keeps the key of its address; 0 means that it is not counted.
struct Admission: ~Copyable {
    /// The decision, with the limit that the address has reached.
    enum Verdict: Equatable {
        /// The connection may stay; ``leave(_:)`` releases the key.
        case admitted(key: UInt32)
        case refused(Limit)
    }

    /// The limits of one address and the total rate, as plain numbers.
    struct Limits {
        /// The limits of remote addresses and of loopback; `Int.max` means none.
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
        /// Connections per second of all addresses together; `nil` means no limit.
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

    /// Decides about a peer with a known address, and counts it if it may stay. `isSecured` means
    /// that its TLS handshake begins.
    mutating func admit(
        _ peer: IPAddress, isSecured: Bool, now: MonotonicTime
    ) -> Verdict {
        let key = peer.key(hash)
        let isLoopback = peer.isLoopback
        guard connections[key] < limits.connections.most(isLoopback) else {
            return .refused(.connectionsPerAddress)
        }
        guard !isSecured || handshakes[key] < limits.handshakes.most(isLoopback) else {
            return .refused(.handshakesPerAddress)
        }
        // Last, because it takes a token, which no other rejection may waste.
        let rate = limits.rate.most(isLoopback)
        guard rate == .max || rates.take(key, rate: rate, now: now) else {
            return .refused(.connectRatePerAddress)
        }
        connections.add(key)
        if isSecured { handshakes.add(key) }
        return .admitted(key: key)
    }

    /// Uncounts a closed connection with this key.
    mutating func leave(_ key: UInt32) {
        if key != 0 { connections.remove(key) }
    }

    /// Uncounts an ended TLS handshake with this key.
    mutating func endHandshake(_ key: UInt32) {
        if key != 0 { handshakes.remove(key) }
    }

    /// Takes a token to accept one connection; false without one.
    mutating func takeToken(now: MonotonicTime) -> Bool {
        guard let rate = limits.connectRate else { return true }
        return tokens.take(rate: rate, now: now)
    }

    /// Returns the token of a connection that was not accepted.
    mutating func putTokenBack() { tokens.putBack() }

    /// The time to accept again: once a hundredth of the rate is available, to limit pauses.
    mutating func nextToken(now: MonotonicTime) -> MonotonicTime {
        guard let rate = limits.connectRate else { return now }
        return tokens.time(of: max(1, rate / 100), rate: rate, now: now)
    }

    /// Addresses that have connections.
    var addressCount: Int { connections.keyCount }
}

extension BrokerLimits.AddressLimit {
    /// The limit for one address, where `whole` is the limit of all together; `nil` means none.
    /// `auto` does not limit loopback, because a proxy there carries all clients.
    func bound(of whole: Int?, isLoopback: Bool) -> Int? {
        switch self {
        case .auto: isLoopback ? nil : whole.map { max(1, $0 / 2) }
        case .off: nil
        case .number(let most): most
        }
    }
}
