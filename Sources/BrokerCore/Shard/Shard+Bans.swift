import BrokerAPI
import MQTTCodec
import Structures

/// Bans: a new one closes the connections that it fits. Addresses are the caller's, who knows them
/// before a byte is read.
extension Shard {
    /// Connections that one turn looks at.
    private static var searchedPerTurn: UInt32 { 1_024 }

    /// The bans in force; `nil` while there are none.
    public var banTable: BanTable? { bans.table }

    /// Puts bans into force, and closes all connections that they fit, in slices of turns.
    public mutating func setBans(_ table: BanTable, reply: @escaping Reply<Int>) {
        bans.set(table, reply: reply)
    }

    /// Looks at further connections, and closes those that a ban fits. `address` finds the ban of a
    /// connection's address; a proxy's that has not named its client yet is not asked for.
    public mutating func continueBans(address: (Handle) -> Ban?) {
        guard let first = bans.place else { return }
        guard let table = bans.table else {
            bans.goOn(at: nil)
            return
        }
        let end = min(connections.endIndex, first + Self.searchedPerTurn)
        for index in first..<max(first, end) {
            guard let handle = connections.current(at: index), connections.isLive(handle),
                let ban = findBan(of: handle, in: table)
                    ?? (connections[handle].origin == 0 ? nil : address(handle))
            else { continue }
            bans.noteClosed()
            self.end(handle, .closedByBan(ban.id))
        }
        closeEnding()
        bans.goOn(at: end < connections.endIndex ? end : nil)
    }

    /// The ban of a connection's session; `nil` also before it has one.
    private func findBan(of handle: Handle, in table: BanTable) -> Ban? {
        let session = connections[handle].session
        guard session != noIndex, table.hasNames else { return nil }
        let now = context.wallClockMs
        let record = sessions[session]
        return record.clientID.withBytes { table.ban(ofClient: $0, atMs: now) }
            ?? record.ownerName?.withBytes { table.ban(ofUser: $0, atMs: now) }
    }
}

/// The end of all connections of a user, as by an administrator: sessions stay.
extension Shard {
    /// Closes the connections of a user in slices of turns, and answers with their number. Those
    /// whose password is being checked close too, since it may be checked against the former one.
    public mutating func disconnect(user name: [UInt8], reply: @escaping Reply<Int>) {
        userDisconnects.add(name, reply: reply)
    }

    /// Looks at further connections.
    public mutating func continueUserDisconnects() {
        guard userDisconnects.hasWork, var search = userDisconnects.take() else { return }
        let first = search.place
        let end = min(connections.endIndex, first + Self.searchedPerTurn)
        for index in first..<max(first, end) {
            guard let handle = connections.current(at: index), connections.isLive(handle),
                belongs(handle, to: search.userName)
            else { continue }
            search.closed += 1
            self.end(handle, .administrator)
        }
        closeEnding()
        search.place = end
        if end < connections.endIndex {
            userDisconnects.putBack(search)
        } else {
            search.reply(.success(search.closed))
        }
    }

    private func belongs(_ handle: Handle, to userName: [UInt8]) -> Bool {
        let session = connections[handle].session
        guard session != noIndex else { return userNameBeingChecked(handle) == userName }
        return userName.withUnsafeBytes { sessions[session].ownerName?.equals($0) ?? false }
    }
}
