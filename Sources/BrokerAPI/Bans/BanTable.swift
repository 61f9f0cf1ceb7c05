import Addresses

/// All bans of one moment, found by client identifier, user name and address. It never changes: a
/// new ban makes a new table.
///
/// Expired bans are passed over when they are found, so that none needs a timer.
public final class BanTable: Sendable {
    /// Counts the tables of a process, so that an older one never replaces a newer one.
    public let generation: UInt64
    /// In the order of the file.
    public let bans: [Ban]
    /// What the bans have refused; the tables that follow have it too.
    public let hits: BanHits
    private let clients: [[UInt8]: Int]
    private let users: [[UInt8]: Int]
    private let networks: [IPNetwork: Int]
    /// Prefix lengths of ``networks``, each once.
    private let lengths: [UInt8]

    public init(_ bans: [Ban], generation: UInt64, hits: BanHits = BanHits()) {
        self.bans = bans
        self.hits = hits
        self.generation = generation
        var clients: [[UInt8]: Int] = [:]
        var users: [[UInt8]: Int] = [:]
        var networks: [IPNetwork: Int] = [:]
        for (place, ban) in bans.enumerated() {
            switch ban.target {
            case .client(let name): clients[name] = place
            case .user(let name): users[name] = place
            case .address(let network): networks[network] = place
            }
        }
        self.clients = clients
        self.users = users
        self.networks = networks
        lengths = Set(networks.keys.map(\.length)).sorted()
    }

    public var hasNames: Bool { !clients.isEmpty || !users.isEmpty }
    public var hasAddresses: Bool { !networks.isEmpty }

    /// The ban of a client identifier at a UNIX time in milliseconds; `nil` without one.
    public func ban(ofClient identifier: UnsafeRawBufferPointer, atMs now: Int64) -> Ban? {
        clients.isEmpty ? nil : current(clients[[UInt8](identifier)], now)
    }

    /// The ban of a user name; `nil` without one.
    public func ban(ofUser name: UnsafeRawBufferPointer, atMs now: Int64) -> Ban? {
        users.isEmpty ? nil : current(users[[UInt8](name)], now)
    }

    /// A ban of a network that holds the address; `nil` without one. Takes one look for each prefix
    /// length that bans have.
    public func ban(of address: IPAddress, atMs now: Int64) -> Ban? {
        let address = address.unmapped
        for length in lengths where length <= address.family.bitCount {
            let place = networks[IPNetwork(address, length: length)]
            if let ban = current(place, now) { return ban }
        }
        return nil
    }

    /// The bans that fit any of these, each once, in the order of the file.
    public func bans(
        ofClient clientID: String, users: [String], addresses: [IPAddress], atMs now: Int64
    ) -> [Ban] {
        let found =
            [current(clients[Array(clientID.utf8)], now)]
            + users.map { current(self.users[Array($0.utf8)], now) }
            + addresses.map { ban(of: $0, atMs: now) }
        let ids = Set(found.compactMap { $0?.id })
        return ids.isEmpty ? [] : bans.filter { ids.contains($0.id) }
    }

    private func current(_ place: Int?, _ now: Int64) -> Ban? {
        guard let place, !bans[place].isExpired(atMs: now) else { return nil }
        return bans[place]
    }
}
