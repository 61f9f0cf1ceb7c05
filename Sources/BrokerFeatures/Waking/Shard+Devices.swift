import BrokerAPI
import BrokerCore
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Devices: registered by their clients with a PUBLISH to `$hermes/device`, or over HTTP.
extension Shard {
    // MARK: Over MQTT

    /// Registers the device of a session's client, or forgets it if the payload is empty.
    mutating func takeRegistration(_ payload: UnsafeRawBufferPointer, from session: UInt32) {
        context.budget.spend(WorkBudget.registration)
        let client = sessions[session].clientID
        let former = client.withBytes { features.devices.find($0) }
        guard payload.count > 0 else {
            if let former, mayChange(former, to: nil, session) { forgetDevice(former) }
            return
        }
        guard let registration = DeviceReader.read(payload) else {
            features.wakeCounters.malformed += 1
            context.notices.appendBounded(
                .deviceRefused(
                    clientID: client.array, .malformed(bytes: payload.count)))
            return
        }
        let device = StoredDevice(
            clientID: client.array, userName: sessions[session].claimedUserName,
            token: [UInt8](registration.token), bundle: [UInt8](registration.bundle),
            kind: registration.kind.rawValue, environment: registration.environment.rawValue,
            registeredMs: context.wallClockMs, isSetAside: false)
        if let former, !mayChange(former, to: device.token, session) { return }
        guard !register(device) else { return }
        context.notices.appendBounded(.deviceRefused(clientID: client.array, .noRoom))
    }

    /// True when the client of a session may forget or replace its device. That of another user is
    /// that user's, whose session under this identifier has ended; only the phone itself, whose token
    /// it is, may pass to another user.
    private mutating func mayChange(
        _ former: UInt32, to token: [UInt8]?, _ session: UInt32
    ) -> Bool {
        let device = features.devices[former]
        let isOwn = features.devices.serves(former, userName: sessions[session].ownerName)
        let isSamePhone = token.map { $0.withUnsafeBytes { device.token.equals($0) } } ?? false
        guard !isOwn, !isSamePhone else { return true }
        features.wakeCounters.ofOthers += 1
        context.notices.appendBounded(
            .deviceRefused(clientID: sessions[session].clientID.array, .ofAnotherUser))
        return false
    }

    // MARK: Over HTTP

    /// The device of a client; `nil` without one.
    public func device(of clientID: String) -> DeviceDetail? {
        Array(clientID.utf8).withUnsafeBytes { features.devices.find($0) }.map { detail(of: $0) }
    }

    /// Registers a device and answers once that is stored: false when there is no room for it.
    public mutating func setDevice(
        of clientID: String, _ device: Device, reply: @escaping Reply<Bool>
    ) {
        guard !commits.holdsMessages else {
            reply(.failure(.storeRefuses))
            return
        }
        let stored = StoredDevice(
            clientID: Array(clientID.utf8),
            userName: device.userName.map { Array($0.utf8) },
            token: device.token, bundle: Array(device.bundle.utf8), kind: device.kind.rawValue,
            environment: device.environment.rawValue, registeredMs: context.wallClockMs,
            isSetAside: false)
        guard register(stored) else {
            reply(.success(false))
            return
        }
        commit(true, reply)
    }

    /// Forgets a device and answers once that is stored: false without one.
    public mutating func removeDevice(of clientID: String, reply: @escaping Reply<Bool>) {
        guard let device = Array(clientID.utf8).withUnsafeBytes({ features.devices.find($0) })
        else {
            reply(.success(false))
            return
        }
        guard !commits.isBacklogFull else {
            reply(.failure(.storeRefuses))
            return
        }
        forgetDevice(device)
        commit(true, reply)
    }

    /// A page of devices in no particular order. It looks at a bounded number of places, so it may be
    /// short.
    public func deviceList(from first: UInt32, limit: Int) -> DevicePage {
        var page = DevicePage()
        var place = min(first, features.devices.endIndex)
        let stop = place + min(16_384, features.devices.endIndex - place)
        while place < stop, page.devices.count < limit {
            if features.devices[place].generation != 0 { page.devices.append(detail(of: place)) }
            place += 1
        }
        if place < features.devices.endIndex { page.next = "\(place)" }
        return page
    }

    private func detail(of place: UInt32) -> DeviceDetail {
        let record = features.devices[place]
        let owed = record.owed == noIndex ? nil : features.wakes[record.owed].state
        let state: DeviceDetail.WakeState =
            switch owed {
            case nil: record.isSetAside ? .setAside : .none
            case .watching: .watched
            case .waiting, .reading: .waiting
            case .ready: .ready
            case .sent: .sent
            }
        return DeviceDetail(
            clientID: features.devices.clientID(of: place),
            device: features.devices.device(place),
            wake: state,
            waiting: record.owed == noIndex ? 0 : Int(features.wakes[record.owed].count),
            lastOutcome: record.lastOutcome.map(\.name),
            lastReason: features.devices.lastReason(of: place),
            lastAnsweredAtMs: record.answeredMs == 0 ? nil : record.answeredMs)
    }

    // MARK: Changes

    /// Registers a device in place of the client's earlier one; false when there is no room for it.
    /// The caller ends the group of records.
    private mutating func register(_ device: StoredDevice) -> Bool {
        let existing = device.clientID.withUnsafeBytes { features.devices.find($0) }
        let former = existing.map { features.devices.stored($0) }
        guard
            features.devices.hasRoom(
                for: device, replacing: former, limit: context.limits.deviceBytes)
        else {
            features.wakeCounters.refused += 1
            return false
        }
        if let kind = Device.Kind(rawValue: device.kind),
            let other = device.token.withUnsafeBytes({
                features.devices.find(token: $0, kind: kind)
            }),
            other != existing
        {
            // Another person has logged in on this phone.
            forgetDevice(other)
        }
        var device = device
        if let former, former.token == device.token, former.kind == device.kind {
            device.woken = former.woken
        }
        if let existing { removeDevice(existing) }
        guard let place = features.devices.add(device, pool: pool) else { return false }
        commits.records.device(device)
        if device.woken.session != 0 || device.woken.showsBadge { record(device.woken, of: place) }
        serve(place)
        return true
    }

    /// Has the device woken for its client's session, if there is one, and for what waits in it.
    mutating func serve(_ device: UInt32) {
        let client = features.devices[device].identifier
        guard let session = client.withBytes({ sessions.find($0) }) else { return }
        setDevice(of: session)
        if sessions[session].isWatched { examineQueue(of: session, device) }
    }

    /// Notes whether a session's client has a device that is woken for it.
    mutating func setDevice(of session: UInt32) {
        let device = sessions[session].clientID.withBytes { features.devices.find($0) }
        sessions[session].isWatched =
            device.map { features.devices.serves($0, userName: sessions[session].ownerName) }
            ?? false
        if let device, sessions[session].isWatched { followBadge(of: device, session) }
    }

    /// The device that is woken for a session; `nil` without one.
    func device(for session: UInt32) -> UInt32? {
        guard sessions[session].isWatched else { return nil }
        return sessions[session].clientID.withBytes { features.devices.find($0) }
    }

    /// The session for which a device is woken; `nil` without one.
    func session(for device: UInt32) -> UInt32? {
        features.devices[device].identifier.withBytes { sessions.find($0) }
            .flatMap { sessions[$0].isWatched ? $0 : nil }
    }

    /// Removes a device, also from the store. The caller ends the group of records.
    mutating func forgetDevice(_ device: UInt32) {
        features.devices[device].identifier.withBytes { commits.records.deviceRemoved(of: $0) }
        removeDevice(device)
    }

    private mutating func removeDevice(_ device: UInt32) {
        features.devices[device].woken.showsBadge = false
        endWake(of: device)
        if let session = session(for: device) { sessions[session].isWatched = false }
        features.devices.remove(device, pool: pool)
    }

    /// Restores a device, after the sessions; false for one that makes no sense, which only damage
    /// makes.
    mutating func restoreDevice(_ stored: StoredDevice) -> Bool {
        guard let device = features.devices.add(stored, pool: pool) else { return false }
        if let session = features.devices[device].identifier.withBytes({ sessions.find($0) }) {
            setDevice(of: session)
        }
        return true
    }
}

extension ShowDevice: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<DeviceDetail?>) {
        reply(.success(shard.device(of: clientID)))
    }
}

extension SetDevice: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<Bool>) {
        shard.setDevice(of: clientID, device, reply: reply)
    }
}

extension RemoveDevice: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<Bool>) {
        shard.removeDevice(of: clientID, reply: reply)
    }
}

extension ListDevices: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<DevicePage>) {
        reply(.success(shard.deviceList(from: from, limit: limit)))
    }
}

extension TryWake: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<WakeTrial?>) {
        shard.tryWake(of: clientID, reply: reply)
    }
}
