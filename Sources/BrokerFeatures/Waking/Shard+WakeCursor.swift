import BrokerAPI
import BrokerCore
import MQTTCore
import Store
import Structures

/// How far devices have been woken: the position, the time and the number that are stored of each.
extension Shard {
    /// True when stored messages wait for which the device has not been woken.
    func owesWake(_ device: UInt32, _ session: UInt32) -> Bool {
        let queue = sessions[session].outbound
        return !features.devices[device].isSetAside && queue.end > cursor(of: device, session)
            && queue.holdsMessages(below: queue.end) && commits.isDurable
            && sessions[session].isPersistent
    }

    /// The position below which the device has been woken.
    func cursor(of device: UInt32, _ session: UInt32) -> UInt64 {
        let woken = features.devices[device].woken
        return woken.session == sessions[session].number ? woken.position : 0
    }

    /// Notes that messages below a position need no further wake; `told` more of them have been told
    /// by a wake that the push service took.
    mutating func setWoken(
        _ device: UInt32, _ session: UInt32, below position: UInt64, told: UInt32 = 0
    ) {
        let former = toldAndWaiting(device, session)
        let queue = sessions[session].outbound
        var woken = StoredDevice.Woken(
            session: sessions[session].number, position: position,
            atMs: told > 0 ? context.wallClockMs : features.devices[device].woken.atMs,
            told: min(former &+ told, queue.waiting + queue.inFlight),
            showsBadge: features.devices[device].woken.showsBadge)
        woken.alerts = features.devices[device].woken.alerts
        woken.alertsSinceMs = features.devices[device].woken.alertsSinceMs
        features.devices[device].woken = woken
        if sessions[session].isPersistent { record(woken, of: device) }
    }

    /// Messages that an earlier wake told and that the client has not fetched; at most as many as
    /// its queue holds.
    func toldAndWaiting(_ device: UInt32, _ session: UInt32) -> UInt32 {
        let woken = features.devices[device].woken
        let queue = sessions[session].outbound
        guard woken.session == sessions[session].number,
            queue.holdsMessages(below: woken.position)
        else { return 0 }
        return min(woken.told, queue.waiting + queue.inFlight)
    }

    /// Records how far a device has been woken; the records leave with the turn's.
    mutating func record(_ woken: StoredDevice.Woken, of device: UInt32) {
        let stored = features.devices.stored(device)
        commits.records.woken(of: stored.clientID, named: stored.name, woken)
    }
}
