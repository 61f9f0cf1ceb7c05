import MQTTCore
import Structures

/// Take-overs, and their delay when two peers repeat them (``TakeOverDamper``).
extension Shard {
    /// True when the client has to wait before it takes over from `old`. One client waits per
    /// identifier: a newer one replaces it.
    package mutating func delaysTakeOver(
        _ judged: JudgedConnect, from old: Handle, session: UInt32
    ) -> Bool {
        let handle = judged.handle
        let (former, newcomer) = (connections[old].origin, connections[handle].origin)
        // A client that returns from its former address is the same client.
        guard former != newcomer, former != 0, newcomer != 0, connections.isLive(old) else {
            return false
        }
        let key = takeOverKey(session)
        guard
            let time = takeOvers.takeOver(key, from: former, by: newcomer, now: context.now)
        else { return false }
        connections[handle].machine.delay(
            HeldConnect(judged.packet, provenUser: judged.provenUser, pool: pool))
        connections.setTimer(handle, at: time)
        if let other = takeOvers.setWaiting(key, handle), connections.isCurrent(other),
            connections[other].machine.isDelayed
        {
            end(other, .takenOver)
        }
        context.counters.takeOversDelayed += 1
        context.notices.append(
            .takeOverDelayed(
                TakeOverReport(
                    clientID: sessions.identifier(of: session),
                    userName: sessions[session].hasUserName
                        ? sessions[session].userName.array : nil,
                    connected: old, waiting: handle,
                    milliseconds: time.milliseconds(since: context.now))))
        return true
    }

    /// Resumes a CONNECT that waits for this session, because the session's connection closes.
    package mutating func releaseDelayed(_ session: UInt32) {
        guard !takeOvers.isQuiet(context.now),
            let handle = takeOvers.waiting(takeOverKey(session)), connections.isCurrent(handle),
            connections[handle].machine.isDelayed
        else { return }
        connections.setTimer(handle, at: context.now)
    }

    package func takeOverKey(_ session: UInt32) -> UInt64 {
        sessions[session].clientID.withBytes { hash($0) }
    }
}
