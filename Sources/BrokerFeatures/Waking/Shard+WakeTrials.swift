import BrokerAPI
import BrokerCore
import Structures

/// Notifications that an operator sends by hand, to see what becomes of them.
extension Shard {
    /// Operators who wait for the end of a notification.
    private static var mostTrials: Int { 64 }

    /// Sends a notification to a client's device now, whatever waits for it, and tells its end:
    /// `nil` without a device.
    public mutating func tryWake(
        of clientID: String, named name: String = "", reply: @escaping Reply<WakeTrial?>
    ) {
        let found = features.devices.find(Array(clientID.utf8), named: Array(name.utf8))
        guard let device = found else {
            reply(.success(nil))
            return
        }
        if let obstacle = obstacle(toTryingWakeOf: device) {
            reply(.success(WakeTrial(outcome: WakeResult.later.name, reason: obstacle)))
            return
        }
        features.trials[device] = reply
        let wake = owe(device)
        features.wakes[wake].purpose = .trial
        if let kind = features.devices[device].service.trial, kind != .alert {
            features.wakes[wake].kind = kind
        }
        makeReady(wake)
    }

    /// Why no notification can be sent to a device now; `nil` when one can.
    private func obstacle(toTryingWakeOf device: UInt32) -> String? {
        let owed = features.devices[device].owed
        if features.trials[device] != nil { return "another test of this device is on its way" }
        if features.devices[device].service.trial == nil {
            return "a Live Activity takes nothing but its own content, so there is no test of it"
        }
        if owed != noIndex, features.wakes[owed].state == .sent {
            return "its own notification is with the sender, which has no answer yet"
        }
        if features.trials.count >= Self.mostTrials {
            return "\(Self.mostTrials) tests of other devices are on their way"
        }
        guard features.wakeDemands.most(of: features.devices.lane(of: device)) == 0 else {
            return nil
        }
        return "no sender takes a notification for it now (hermesctl devices status)"
    }

    mutating func answerTrial(of device: UInt32, _ result: WakeResult, _ reason: String) {
        features.trials.removeValue(forKey: device)?(
            .success(WakeTrial(outcome: result.name, reason: reason.isEmpty ? nil : reason)))
    }

    /// Ends an operator's trial, or the clearing of a badge, whatever its answer: what was owed before
    /// it, and what came meanwhile, is owed still, and goes on after a pause in milliseconds.
    mutating func endTrial(_ wake: UInt32, pause: UInt64 = 0) {
        let device = features.wakes[wake].device
        guard let session = session(for: device), !features.devices[device].isSetAside,
            features.wakes[wake].count > 0 || features.wakes[wake].needsReading,
            sessions[session].outbound.holdsMessages(below: features.wakes[wake].target)
        else { return endWake(of: device) }
        features.wakes[wake].purpose = .messages
        continueWake(wake, session, after: pause)
    }
}
