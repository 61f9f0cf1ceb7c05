import BrokerAPI
import BrokerCore
import MQTTCodec
import MQTTCore
import Store
import Structures
import TimeZones

/// Devices: registered by their clients with a PUBLISH to `$hermes/device`, or over HTTP.
extension Shard {
    // MARK: Over MQTT

    /// Registers a device of a session's client, or forgets one that is only named. An empty payload
    /// forgets them all.
    mutating func takeRegistration(_ payload: UnsafeRawBufferPointer, from session: UInt32) {
        context.budget.spend(WorkBudget.registration)
        let client = sessions[session].clientID
        guard payload.count > 0 else {
            var next = client.withBytes { features.devices.first(of: $0) }
            while let device = next {
                next = features.devices.sibling(of: device)
                if mayChange(device, to: nil, session) { forgetDevice(device) }
            }
            return
        }
        guard let registration = DeviceReader.read(payload) else {
            features.wakeCounters.malformed += 1
            context.notices.appendBounded(
                .deviceRefused(
                    clientID: client.array, .malformed(bytes: payload.count)))
            return
        }
        let name = [UInt8](registration.name)
        let former = features.devices.find(client.array, named: name)
        guard !registration.isGoodbye else {
            if let former, mayChange(former, to: nil, session) { forgetDevice(former) }
            return
        }
        var device = StoredDevice(
            clientID: client.array, userName: sessions[session].claimedUserName,
            token: [UInt8](registration.token), bundle: [UInt8](registration.bundle),
            kind: registration.kind.rawValue, environment: registration.environment.rawValue,
            registeredMs: context.wallClockMs, isSetAside: false)
        device.name = name
        device.timeZone = knownZone(registration.timeZone, of: device)
        if let former, !mayChange(former, to: device.token, session) { return }
        guard !register(device) else { return }
        context.notices.appendBounded(.deviceRefused(clientID: client.array, .noRoom))
    }

    /// The time zone that a phone names, if this machine knows it; else that of the configuration
    /// counts, and the log says so.
    private mutating func knownZone(
        _ name: UnsafeRawBufferPointer, of device: StoredDevice
    ) -> [UInt8] {
        guard !name.isEmpty else { return [] }
        if ZoneTable.isName(name), context.limits.wakeZones[name] != nil { return [UInt8](name) }
        context.notices.appendBounded(
            .deviceRefused(
                clientID: device.clientID,
                .unknownZone([UInt8](name.prefix(ZoneTable.mostNameBytes)))))
        return []
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

    /// The device of a client by its name; `nil` without one.
    public func device(of clientID: String, named name: String = "") -> DeviceDetail? {
        features.devices.find(Array(clientID.utf8), named: Array(name.utf8)).map { detail(of: $0) }
    }

    /// All devices of a client, that without a name first.
    public func devices(of clientID: String) -> [DeviceDetail] {
        var list: [DeviceDetail] = []
        var next = Array(clientID.utf8).withUnsafeBytes { features.devices.first(of: $0) }
        while let device = next {
            list.append(detail(of: device))
            next = features.devices.sibling(of: device)
        }
        return list.sorted { $0.device.name.utf8.lexicographicallyPrecedes($1.device.name.utf8) }
    }

    /// Registers a device and answers once that is stored.
    public mutating func setDevice(
        of clientID: String, _ device: Device, reply: @escaping Reply<SetDevice.Answer>
    ) {
        guard !commits.holdsMessages else {
            reply(.failure(.storeRefuses))
            return
        }
        guard device.timeZone.isEmpty || context.limits.wakeZones[device.timeZone.utf8] != nil
        else {
            reply(.success(.unknownTimeZone))
            return
        }
        var stored = StoredDevice(
            clientID: Array(clientID.utf8),
            userName: device.userName.map { Array($0.utf8) },
            token: device.token, bundle: Array(device.bundle.utf8), kind: device.kind.rawValue,
            environment: device.environment.rawValue, registeredMs: context.wallClockMs,
            isSetAside: false)
        stored.name = Array(device.name.utf8)
        stored.timeZone = Array(device.timeZone.utf8)
        guard register(stored) else {
            reply(.success(.noRoom))
            return
        }
        commit(.stored, reply)
    }

    /// Forgets a device and answers once that is stored: false without one.
    public mutating func removeDevice(
        of clientID: String, named name: String = "", reply: @escaping Reply<Bool>
    ) {
        let found = features.devices.find(Array(clientID.utf8), named: Array(name.utf8))
        guard let device = found else {
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
            case .waiting where features.wakes[record.owed].isHeld: .held
            case .waiting, .reading: .waiting
            case .ready: .ready
            case .sent: .sent
            }
        var detail = DeviceDetail(
            clientID: features.devices.clientID(of: place),
            device: features.devices.device(place),
            wake: state,
            waiting: record.owed == noIndex ? 0 : Int(features.wakes[record.owed].count),
            lastOutcome: record.lastOutcome.map(\.name),
            lastReason: features.devices.lastReason(of: place),
            lastAnsweredAtMs: record.answeredMs == 0 ? nil : record.answeredMs)
        if record.owed != noIndex { detail.heldUntilMs = heldUntil(record.owed) }
        return detail
    }

    // MARK: Changes

    /// Registers a device in place of the client's earlier one of its name; false when there is no room
    /// for it, or its client has as many as it may.
    /// The caller ends the group of records.
    private mutating func register(_ device: StoredDevice) -> Bool {
        let existing = features.devices.find(device.clientID, named: device.name)
        let former = existing.map { features.devices.stored($0) }
        guard
            existing != nil || !features.devices.hasMost(of: device.clientID),
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
        if self.session(for: device) == session { examineQueue(of: session, device) }
    }

    /// Notes whether a session's client has a device that is woken for it.
    mutating func setDevice(of session: UInt32) {
        sessions[session].isWatched = true
        sessions[session].isWatched = firstDevice(for: session) != nil
        var next = firstDevice(for: session)
        while let device = next {
            next = nextDevice(after: device, for: session)
            followBadge(of: device, session)
        }
    }

    /// The first device that is woken for a session; `nil` without one. Each has a wake of its own.
    func firstDevice(for session: UInt32) -> UInt32? {
        guard sessions[session].isWatched else { return nil }
        let first = sessions[session].clientID.withBytes { features.devices.first(of: $0) }
        return first.flatMap { serving($0, session) }
    }

    /// The next such device after one.
    func nextDevice(after device: UInt32, for session: UInt32) -> UInt32? {
        features.devices.sibling(of: device).flatMap { serving($0, session) }
    }

    /// This device of a client, or the next that is woken for the session.
    private func serving(_ device: UInt32, _ session: UInt32) -> UInt32? {
        var next: UInt32? = device
        while let device = next {
            if features.devices.serves(device, userName: sessions[session].ownerName) {
                return device
            }
            next = features.devices.sibling(of: device)
        }
        return nil
    }

    /// The session for which a device is woken; `nil` without one.
    func session(for device: UInt32) -> UInt32? {
        guard let session = features.devices[device].identifier.withBytes({ sessions.find($0) }),
            sessions[session].isWatched,
            features.devices.serves(device, userName: sessions[session].ownerName)
        else { return nil }
        return session
    }

    /// Removes a device, also from the store. The caller ends the group of records.
    mutating func forgetDevice(_ device: UInt32) {
        let stored = features.devices.stored(device)
        commits.records.deviceRemoved(of: stored.clientID, named: stored.name)
        removeDevice(device)
    }

    private mutating func removeDevice(_ device: UInt32) {
        features.devices[device].woken.showsBadge = false
        endWake(of: device)
        let session = session(for: device)
        features.devices.remove(device, pool: pool)
        if let session { setDevice(of: session) }
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
        reply(.success(shard.device(of: clientID, named: name)))
    }
}

extension SetDevice: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<Answer>) {
        shard.setDevice(of: clientID, device, reply: reply)
    }
}

extension RemoveDevice: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<Bool>) {
        shard.removeDevice(of: clientID, named: name, reply: reply)
    }
}

extension ListDevices: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<DevicePage>) {
        guard let clientID else {
            return reply(.success(shard.deviceList(from: from, limit: limit)))
        }
        var page = DevicePage()
        page.devices = shard.devices(of: clientID)
        reply(.success(page))
    }
}

extension TryWake: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<WakeTrial?>) {
        shard.tryWake(of: clientID, named: name, reply: reply)
    }
}
