import BrokerAPI
import BrokerCore
import MQTTCore
import Store
import Structures

/// Devices that an operator has sent to again: set aside by a push service, or in a pause before the
/// next attempt.
extension Shard {
    /// Devices that one question looks at, and that it releases.
    private static var mostLooks: UInt32 { 16_384 }
    private static var mostReleases: Int { 512 }

    /// Releases a client's device and answers once that is stored.
    mutating func releaseDevice(
        of clientID: String, named name: String = "", _ release: DeviceRelease,
        reply: @escaping Reply<Bool?>
    ) {
        let found = features.devices.find(Array(clientID.utf8), named: Array(name.utf8))
        guard let device = found else { return reply(.success(nil)) }
        guard !commits.isBacklogFull else { return reply(.failure(.storeRefuses)) }
        commit(self.release(device, release), reply)
    }

    /// Releases devices from a place on, within bounds, and answers once that is stored.
    mutating func releaseDevices(
        _ question: ReleaseDevices, reply: @escaping Reply<ReleaseDevices.Answer>
    ) {
        guard !commits.isBacklogFull else { return reply(.failure(.storeRefuses)) }
        var answer = ReleaseDevices.Answer(released: 0)
        let end = features.devices.endIndex
        let bundle = question.bundle.map { features.devices.find(bundle: $0) }
        // No device is of an app that nobody has registered.
        if case .some(nil) = bundle { return reply(.success(answer)) }
        var place = min(question.from, end)
        let stop = place + min(Self.mostLooks, end - place)
        while place < stop, answer.released < Self.mostReleases {
            let record = features.devices[place]
            let isMeant =
                record.generation != 0
                && bundle.map { $0 == record.bundle } ?? true
                && question.environment.map { $0 == record.environment } ?? true
            if isMeant, release(place, question.release) { answer.released += 1 }
            place += 1
        }
        if place < end { answer.next = place }
        context.budget.spend(WorkBudget.registration * answer.released)
        commit(answer, reply)
    }

    /// False when the device needs nothing of the kind.
    private mutating func release(_ device: UInt32, _ release: DeviceRelease) -> Bool {
        switch release {
        case .resume:
            guard features.devices[device].isSetAside else { return false }
            features.devices[device].isSetAside = false
            commits.records.device(features.devices.stored(device))
            serve(device)
            return true
        case .retry:
            let wake = features.devices[device].owed
            guard wake != noIndex, features.wakes[wake].state == .waiting,
                features.wakes[wake].attempts > 0
            else { return false }
            makeReady(wake)
            return true
        }
    }
}

extension ReleaseDevice: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<Bool?>) {
        shard.releaseDevice(of: clientID, named: name, release, reply: reply)
    }
}

extension ReleaseDevices: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<Answer>) {
        shard.releaseDevices(self, reply: reply)
    }
}
