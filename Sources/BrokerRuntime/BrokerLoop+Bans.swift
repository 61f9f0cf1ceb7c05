import Addresses
import BrokerAPI
import BrokerCore
import BrokerFeatures
import Structures
import Transport

/// Bans of addresses, which only the loop knows. Those of names are the shard's.
extension BrokerLoop {
    /// The ban of a new connection's peer, counted and logged; `nil` lets it in.
    mutating func findBan(of peer: IPAddress) -> Ban? {
        guard let table = shard.banTable, table.hasAddresses,
            let ban = table.ban(of: peer, atMs: shard.wallClockMs)
        else { return nil }
        shard.countRefusal(by: ban)
        notices.logBannedAddress(ban, peer, now: shard.now)
        if tracer.isActive {
            tracer.event(
                "connection closed at once: its address is banned (\(ban.id.text))", from: peer,
                atMs: shard.wallClockMs)
        }
        return ban
    }

    /// Goes on with the search for connections that bans fit.
    mutating func continueBans() {
        guard let table = shard.banTable, table.hasAddresses else {
            shard.continueBans { _ in nil }
            return
        }
        let now = shard.wallClockMs
        shard.continueBans { table.ban(of: reactor.peerAddress(of: $0), atMs: now) }
    }
}
