import BrokerAPI
import MQTTCodec
import Structures

/// Refusals of a CONNECT, by its packet, its login, a ban or a limit.
extension Shard {
    package mutating func refuseConnect(
        _ judged: JudgedConnect, _ code: Connack.ReturnCode, _ reason: CloseReason,
        detail: String? = nil
    ) {
        refuseConnect(
            judged.handle, code, reason, [UInt8](judged.clientID),
            userName: judged.provenUser.map { [UInt8]($0.name) } ?? judged.claimedUserName,
            detail: detail)
    }

    /// Sends CONNACK with a non-zero code and ends the connection [MQTT-3.2.2-5].
    package mutating func refuseConnect(
        _ handle: Handle, _ code: Connack.ReturnCode, _ reason: CloseReason,
        _ identifier: [UInt8], userName: [UInt8]?, detail: String? = nil
    ) {
        if connections[handle].outlet.speaks5 {
            refuse5(handle, reason)
        } else {
            connections[handle].outlet.append(
                word: PacketEncoder.fourBytes(.refused(code)), pool: pool)
        }
        context.counters.refused(listener: connections[handle].listener)
        context.counters.otherPacketsSent += 1
        context.notices.append(
            .refused(
                handle, clientID: identifier, userName: userName, reason, detail: detail))
        end(handle, reason)
    }

    /// The ban that a CONNECT meets by its client identifier or user name; `nil` without one.
    @inline(__always)
    package func ban(of judged: JudgedConnect) -> Ban? {
        bans.table == nil ? nil : findBan(of: judged)
    }

    @inline(never)
    private func findBan(of judged: JudgedConnect) -> Ban? {
        guard let table = bans.table else { return nil }
        if let ban = table.ban(ofClient: judged.clientID, atMs: context.wallClockMs) {
            return ban
        }
        guard let name = judged.provenUser?.name ?? judged.userName else { return nil }
        return table.ban(ofUser: name, atMs: context.wallClockMs)
    }

    /// Counts a CONNECT, or a connection from a banned address, that a ban refused.
    public mutating func countRefusal(by ban: Ban) {
        context.counters.bansMet.add(ban.target.kind)
        bans.table?.hits.note(ban.id, atMs: context.wallClockMs)
    }

    /// Refuses a CONNECT that a ban fits.
    package mutating func refuse(_ judged: JudgedConnect, by ban: Ban) {
        countRefusal(by: ban)
        refuseConnect(
            judged.handle, .notAuthorized, .banned(ban.id), [UInt8](judged.clientID),
            userName: judged.claimedUserName)
    }
}
