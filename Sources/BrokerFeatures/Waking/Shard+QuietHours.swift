import BrokerAPI
import BrokerCore
import MQTTCore
import Structures
import TimeZones

/// When an alert that is owed is not told yet: in the quiet hours of its user, and when its device has
/// had as many as it may (`wakes.quiet_hours`, `wakes.cap`).
///
/// What is held is told by itself at the end, together with what came meanwhile. The hours follow from
/// the clock, and the number of alerts is stored with the position, so both hold after a restart.
extension Shard {
    /// A wake that is held is looked at again after so long: hours may change by a reload, and the
    /// clock may be set.
    private static var lookMilliseconds: Int64 { 600_000 }

    /// Holds a wake back that is due; false when it may be told now.
    mutating func holdBack(_ wake: UInt32) -> Bool {
        let (device, now) = (features.wakes[wake].device, context.wallClockMs)
        guard features.wakes[wake].purpose == .messages, !features.wakes[wake].needsReading,
            let end = holdEnd(features.wakes[wake].rule, features.wakes[wake].kind, device)
        else { return false }
        features.wakeCounters.held += features.wakes[wake].wasHeld ? 0 : 1
        let left = UInt64(max(1, min(end - now, Self.lookMilliseconds)))
        features.wakes.wait(
            wake, .waiting, until: context.now.advanced(byMilliseconds: left),
            key: features.devices.handle(of: device).packed)
        features.wakes[wake].isHeld = true
        features.wakes[wake].wasHeld = true
        return true
    }

    /// True when anything is ever held.
    private var mayHold: Bool {
        context.limits.wakeQuietHours != nil || context.limits.wakeCap != nil
            || features.wakeRules.hasOwnHours
    }

    /// When what holds an alert of a rule back ends, in UNIX milliseconds; `nil` when nothing does.
    private mutating func holdEnd(_ index: UInt8?, _ kind: WakeKind, _ device: UInt32) -> Int64? {
        guard kind == .alert, mayHold else { return nil }
        let rule = features.wakeRules.quieting(index)
        let quiet = quietEnd(rule, device)
        let cap = rule.isUncapped ? nil : capEnd(device)
        guard let quiet, let cap else { return quiet ?? cap }
        return max(quiet, cap)
    }

    /// When a device's wake that is held may be told, as far as that is known now; `nil` for another.
    func heldUntil(_ wake: UInt32) -> Int64? {
        guard features.wakes[wake].isHeld else { return nil }
        let device = features.wakes[wake].device
        let rule = features.wakeRules.quieting(features.wakes[wake].rule)
        let quiet = hours(rule).flatMap { findEnd(of: $0, device) }.map { 1_000 * $0 }
        let cap = rule.isUncapped ? nil : capEnd(device)
        return max(quiet ?? context.wallClockMs, cap ?? context.wallClockMs)
    }

    // MARK: Quiet hours

    private func hours(_ rule: Quieting) -> QuietHours? {
        rule.isOff ? nil : rule.own ?? context.limits.wakeQuietHours
    }

    /// The end of hours that last now for a device, in UNIX seconds; `nil` when they do not.
    private func findEnd(of hours: QuietHours, _ device: UInt32) -> Int64? {
        let zones = context.limits.wakeZones
        let zone =
            zones[features.devices.timeZone(of: device)]
            ?? zones[context.limits.wakeTimeZone.utf8] ?? .utc
        return hours.end(at: context.wallClockMs / 1_000, in: zone)
    }

    private mutating func quietEnd(_ rule: Quieting, _ device: UInt32) -> Int64? {
        guard let hours = hours(rule) else { return nil }
        let (zone, now) = (features.devices[device].zone, context.wallClockMs / 1_000)
        if let known = features.quietMemo.known(zone, hours, at: now) {
            return known.end.map { 1_000 * $0 }
        }
        let end = findEnd(of: hours, device)
        features.quietMemo.note(zone, hours, at: now, end: end)
        return end.map { 1_000 * $0 }
    }

    /// True when a message is dropped rather than held, because its device has quiet hours now.
    mutating func isDropped(_ choice: WakeChoice, _ device: UInt32) -> Bool {
        guard features.wakeRules.dropsAny, choice.kind == .alert else { return false }
        let rule = features.wakeRules.quieting(choice.rule)
        return rule.drops && quietEnd(rule, device) != nil
    }

    /// Notes a message that is dropped: it is not asked for again after a restart either, unless an
    /// earlier one is owed still.
    mutating func noteDropped(_ device: UInt32, _ session: UInt32, _ position: UInt64) {
        context.budget.spend(WorkBudget.wake)
        features.wakeCounters.dropped += 1
        let wake = features.devices[device].owed
        guard wake == noIndex else {
            features.wakes[wake].hasDropped = true
            return
        }
        // A connected client is about to get it.
        guard sessions[session].connection == nil else { return }
        setWoken(device, session, below: position + 1)
    }

    // MARK: The cap

    private func capEnd(_ device: UInt32) -> Int64? {
        guard let cap = context.limits.wakeCap else { return nil }
        let woken = features.devices[device].woken
        guard woken.alerts >= cap.count, isCounting(woken, cap) else { return nil }
        return woken.alertsSinceMs + cap.milliseconds
    }

    /// True while the time lasts in which alerts are counted. A clock that was set back ends it.
    private func isCounting(_ woken: StoredDevice.Woken, _ cap: WakeCap) -> Bool {
        let age = context.wallClockMs.subtractingReportingOverflow(woken.alertsSinceMs)
            .partialValue
        return woken.alerts > 0 && (0..<cap.milliseconds).contains(age)
    }

    /// Counts an alert that the push service has taken; ``setWoken(_:_:below:told:)`` stores it.
    mutating func countAlert(of device: UInt32) {
        guard let cap = context.limits.wakeCap else {
            features.devices[device].woken.alerts = 0
            return
        }
        let woken = features.devices[device].woken
        guard isCounting(woken, cap) else {
            features.devices[device].woken.alerts = 1
            features.devices[device].woken.alertsSinceMs = context.wallClockMs
            return
        }
        features.devices[device].woken.alerts = min(.max - 1, woken.alerts) + 1
    }

    // MARK: Several messages of one wake

    /// True when a message of a rule names the wake from now on: the newest does, unless it is held
    /// and the one before may be told. What nobody sees goes along with an alert that is held, since it
    /// would use the alert up; a call rings now.
    mutating func takesName(_ rule: UInt8?, _ kind: WakeKind, of wake: UInt32) -> Bool {
        let device = features.wakes[wake].device
        // What its sender has is told, or given back, and then looked at anew.
        guard features.wakes[wake].isNamed else { return true }
        let former = features.wakes[wake].kind
        let isHeld = holdEnd(features.wakes[wake].rule, former, device) != nil
        guard holdEnd(rule, kind, device) != nil else { return !(isHeld && kind.isSilent) }
        return isHeld || former.isSilent
    }

    /// Notes that a wake was not told, and comes again together with what came meanwhile. When that took
    /// its name and is to be held, the queue says what of all of it may be told; else it has its name
    /// still.
    mutating func noteUntold(_ wake: UInt32) {
        guard features.wakes[wake].isNamed else {
            features.wakes[wake].isNamed = true
            return
        }
        guard
            holdEnd(
                features.wakes[wake].rule, features.wakes[wake].kind, features.wakes[wake].device)
                != nil
        else { return }
        features.wakes[wake].needsReading = true
    }

    /// Has a wake that is held go on, if a message that may be told now has come to it.
    mutating func releaseIfLoud(_ wake: UInt32, _ session: UInt32) {
        guard features.wakes[wake].isHeld,
            holdEnd(
                features.wakes[wake].rule, features.wakes[wake].kind, features.wakes[wake].device)
                == nil
        else { return }
        continueWake(wake, session, after: 0)
    }
}
