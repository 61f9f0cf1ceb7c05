import BrokerAPI
import BrokerCore
import MQTTCore
import Structures

/// The number on an app's icon, which goes once nothing waits for the client (`wakes.clear_badge`).
///
/// The device keeps that a notification has put it there. While it does, the session's queue positions
/// are followed, and the last to end owes the device a notification that clears it.
extension Shard {
    /// Badges that are looked at in a turn.
    private static var badgesPerTurn: Int { 1_024 }

    /// Notes that a notification is handed out which may show a badge.
    ///
    /// Its answer may not come, and other messages may name the wake until it does, so it is not
    /// awaited: at worst a badge is cleared that the device never showed.
    mutating func noteBadge(of wake: UInt32) {
        let (device, rule) = (features.wakes[wake].device, features.wakes[wake].rule)
        guard features.wakes[wake].kind == .alert,
            rule.flatMap({ features.wakeRules[$0] })?.badge == true,
            !features.devices[device].woken.showsBadge
        else { return }
        features.devices[device].woken.showsBadge = true
        record(features.devices[device].woken, of: device)
        if let session = session(for: device) { followBadge(of: device, session) }
    }

    /// Notes that the push service has taken, or refused for good, what clears a device's badge.
    mutating func noteBadgeCleared(_ device: UInt32) {
        features.devices[device].woken.showsBadge = false
        record(features.devices[device].woken, of: device)
    }

    /// Has the ends of a session's messages followed while its device shows a badge, and clears that if
    /// none waits.
    mutating func followBadge(of device: UInt32, _ session: UInt32) {
        guard features.devices[device].woken.showsBadge else { return }
        sessions[session].follows = true
        if isEmpty(session) { clearBadge(of: device) }
    }

    /// A followed position of a session has ended: with the last one the badge goes. The queue may
    /// hold the position still, so it is looked at later in the turn, or in the next.
    mutating func noteFetched(_ session: UInt32) {
        var next = firstDevice(for: session)
        while let device = next {
            next = nextDevice(after: device, for: session)
            guard features.devices[device].woken.showsBadge else { continue }
            sessions[session].follows = true
            guard !features.devices[device].isBadgeNoted else { continue }
            features.devices[device].isBadgeNoted = true
            features.notedBadges.append(features.devices.handle(of: device))
        }
    }

    /// Looks at badges of devices whose messages have ended, a slice in a turn.
    mutating func clearNotedBadges() {
        guard !features.notedBadges.isEmpty else { return }
        let noted = features.notedBadges.prefix(Self.badgesPerTurn)
        features.notedBadges.removeFirst(noted.count)
        for handle in noted where features.devices.isCurrent(handle) {
            features.devices[handle.index].isBadgeNoted = false
            guard let session = session(for: handle.index) else { continue }
            followBadge(of: handle.index, session)
        }
        context.budget.spend(WorkBudget.wake * noted.count)
    }

    private func isEmpty(_ session: UInt32) -> Bool {
        let queue = sessions[session].outbound
        return !queue.holdsMessages(below: queue.end)
    }

    /// Owes a device the notification that clears its badge, if nothing waits. A notification that is
    /// under way, or a trial, comes first.
    mutating func clearBadge(of device: UInt32) {
        guard mustClearBadge(of: device) else { return }
        let owed = features.devices[device].owed
        guard owed == noIndex else {
            switch (features.wakes[owed].purpose, features.wakes[owed].state) {
            case (.messages, .watching), (.messages, .waiting), (.messages, .ready):
                // Nothing waits of what it would tell; its end comes back here.
                if features.wakes[owed].state != .watching { features.wakeCounters.cancelled += 1 }
                endWake(of: device)
            case (.messages, .reading), (.messages, .sent), (.trial, _), (.badge, _): break
            }
            return
        }
        let wake = owe(device)
        features.wakes[wake].purpose = .badge
        makeReady(wake)
    }

    /// True when a device shows a badge although nothing waits for it.
    func mustClearBadge(of device: UInt32) -> Bool {
        context.limits.wakeClearsBadge && features.devices[device].woken.showsBadge
            && !features.devices[device].isSetAside
            && session(for: device).map { isEmpty($0) } ?? false
    }

    /// Gives a badge that is about to be cleared up for a new message, which sets it anew; false when
    /// none is, or its clearing is under way.
    mutating func stopClearing(_ device: UInt32) -> Bool {
        let wake = features.devices[device].owed
        guard features.wakes[wake].purpose == .badge, features.wakes[wake].state != .sent else {
            return false
        }
        features.wakes[wake].purpose = .messages
        features.wakes[wake].attempts = 0
        return true
    }

    /// Has a badge that is not cleared yet go on after a pause in milliseconds; messages that came
    /// meanwhile go first.
    mutating func continueClearing(_ wake: UInt32, after milliseconds: UInt64) {
        let device = features.wakes[wake].device
        guard mustClearBadge(of: device) else {
            features.wakes[wake].attempts = 0
            return endTrial(wake, pause: milliseconds)
        }
        guard milliseconds > 0 else { return makeReady(wake) }
        features.wakes.wait(
            wake, .waiting, until: context.now.advanced(byMilliseconds: milliseconds),
            key: features.devices.handle(of: device).packed)
    }
}
