import BrokerAPI
import MQTTCodec
import MQTTCore
import Structures

/// Take-overs: immediate, unless two live peers throw each other out again and again.
///
/// Then the newcomer waits with its CONNECT, and whoever is connected stays connected meanwhile. Only one
/// waits for a client identifier: a newer one takes its place.
extension Shard {
    /// Whether a newcomer has to wait before it takes over from `old`; then its CONNECT is kept.
    mutating func delaysTakeOver(
        _ handle: Handle, from old: Handle, session: UInt32,
        _ packet: UnsafeRawBufferPointer
    ) -> Bool {
        let (former, newcomer) = (
            connections[old.index].origin, connections[handle.index].origin
        )
        // A client that comes again from where it was is one client.
        guard former != newcomer, former != 0, newcomer != 0,
            !connections[old.index].isDoomed
        else { return false }
        let key = takeOverKey(session)
        guard let time = takeOvers.takeOver(key, from: former, by: newcomer, now: now) else {
            return false
        }
        connections[handle.index].machine.delay()
        keepConnect(handle, packet)
        setTimer(handle, at: time)
        if let other = takeOvers.setWaiting(key, handle), isCurrent(other),
            connections[other.index].machine.isDelayed
        {
            doom(other, .takenOver)
        }
        counters.takeOversDelayed += 1
        notices.append(
            .takeOverDelayed(
                TakeOverReport(
                    clientIdentifier: sessions[session].clientIdentifier.array,
                    userName: sessions[session].hasUserName
                        ? sessions[session].userName.array : nil,
                    connected: old, waiting: handle,
                    milliseconds: time.milliseconds(since: now))))
        return true
    }

    /// The time of a newcomer that waits has come: it is judged anew.
    mutating func resumeDelayed(_ handle: Handle) {
        guard !connections[handle.index].isDoomed, connections[handle.index].machine.endDelay(),
            let copy = takeConnect(handle)
        else { return }
        defer { copy.release(in: pool) }
        let (connect, bytes) = Self.decoded(copy)
        openSession(handle, connect, bytes, bytes)
    }

    /// Whom a session belongs to has gone: nobody is thrown out by the one who waits.
    mutating func releaseDelayed(_ session: UInt32) {
        guard !takeOvers.isQuiet(now), let handle = takeOvers.waiting(takeOverKey(session)),
            isCurrent(handle), connections[handle.index].machine.isDelayed
        else { return }
        setTimer(handle, at: now)
    }

    /// The loop has found out the addresses of those who fight.
    package mutating func nameTakeOver(_ report: TakeOverReport, peers: [String]) {
        let key = report.clientIdentifier.withUnsafeBytes { hash($0) }
        takeOvers.name(key, peers)
    }

    /// What `GET /v1/clients/{id}` says; `nil` when nobody fights over the session.
    func repeatedTakeOvers(_ session: UInt32, address: (Handle) -> String) -> RepeatedTakeOvers? {
        guard let report = takeOvers.report(takeOverKey(session), now: now) else { return nil }
        let waiting = report.waiting.flatMap { handle in
            isCurrent(handle) && connections[handle.index].machine.isDelayed
                ? address(handle) : nil
        }
        return RepeatedTakeOvers(
            count: report.takeOvers, delayMs: Int64(report.delayMilliseconds),
            peers: report.peers, waiting: waiting)
    }

    private func takeOverKey(_ session: UInt32) -> UInt64 {
        sessions[session].clientIdentifier.withBytes { hash($0) }
    }

    private mutating func setTimer(_ handle: Handle, at time: MonotonicTime) {
        let timer = connections[handle.index].timer
        if timer != noIndex {
            timers.reschedule(timer, at: time)
        } else {
            connections[handle.index].timer = timers.schedule(
                TimerPayload.connection(handle).encoded, at: time)
        }
    }
}

/// Two peers throw each other out, and the next one waits.
package struct TakeOverReport: Sendable {
    package let clientIdentifier: [UInt8]
    /// Both have it: a session belongs to its client identifier and its user.
    package let userName: [UInt8]?
    package let connected: Handle
    package let waiting: Handle
    package let milliseconds: UInt64
}
