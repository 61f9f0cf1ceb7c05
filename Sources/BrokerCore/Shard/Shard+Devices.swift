import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Devices: registered by their clients with a PUBLISH to `$hermes/device`, or over HTTP.
extension Shard {
    private static var deviceTopic: StaticString { "$hermes/device" }

    /// True for the topic by which a client registers its device.
    @inline(__always)
    static func isDeviceTopic(_ topic: UnsafeRawBufferPointer) -> Bool {
        topic.first == UInt8(ascii: "$") && equalsDeviceTopic(topic)
    }

    @inline(never)
    private static func equalsDeviceTopic(_ topic: UnsafeRawBufferPointer) -> Bool {
        topic.elementsAreEqual(
            to: UnsafeRawBufferPointer(
                start: deviceTopic.utf8Start, count: deviceTopic.utf8CodeUnitCount))
    }

    // MARK: Over MQTT

    /// Handles a PUBLISH to `$hermes/device`. It goes to nobody and is not retained; its
    /// acknowledgement waits until the registration is stored. MQTT 3.1.1 has no word for "refused",
    /// so one that cannot be taken is acknowledged, counted and logged.
    @inline(never)
    mutating func receiveRegistration(
        _ handle: Handle, _ publish: Publish, _ frame: PacketDecoder.Frame,
        _ bytes: UnsafeRawBufferPointer
    ) {
        let session = connections[handle].session
        context.budget.spend(WorkBudget.registration)
        switch publish.delivery {
        case .atMostOnce:
            takeRegistration(bytes[publish.payload], from: session)
            if commits.records.hasUncommittedRecords { commit() }
        case .atLeastOnce(let identifier, _):
            context.counters.publishesReceivedAtLeastOnce += 1
            takeRegistration(bytes[publish.payload], from: session)
            acknowledge(
                handle, .puback, identifier,
                needsCommit: commits.records.hasUncommittedRecords,
                requestBytes: Int(frame.packet.count))
        case .exactlyOnce(let identifier, _):
            context.counters.publishesReceivedExactlyOnce += 1
            guard !sessions[session].inbound.contains(identifier) else {
                // Acknowledged again but taken once [MQTT-4.3.3-2].
                acknowledge(handle, .pubrec, identifier, needsCommit: false, requestBytes: 0)
                return
            }
            guard sessions[session].inbound.count < context.limits.maxInboundQoS2 else {
                end(handle, .tooManyInboundQoS2)
                return
            }
            sessions[session].inbound.insert(identifier, pool: pool)
            if sessions[session].isPersistent {
                commits.records.inbound(
                    session: sessions[session].number, packetIdentifier: identifier.rawValue)
            }
            takeRegistration(bytes[publish.payload], from: session)
            acknowledge(
                handle, .pubrec, identifier, needsCommit: commits.records.hasUncommittedRecords,
                requestBytes: Int(frame.packet.count))
        }
    }

    /// Registers the device of a session's client, or forgets it if the payload is empty.
    private mutating func takeRegistration(_ payload: UnsafeRawBufferPointer, from session: UInt32)
    {
        let client = sessions[session].clientIdentifier
        guard payload.count > 0 else {
            if let device = client.withBytes({ devices.find($0) }) { forgetDevice(device) }
            return
        }
        guard let registration = DeviceReader.read(payload) else {
            wakeCounters.malformed += 1
            context.notices.appendBounded(
                .deviceRefused(
                    clientIdentifier: client.array, .malformed(bytes: payload.count)))
            return
        }
        let device = StoredDevice(
            clientIdentifier: client.array, userName: sessions[session].claimedUserName,
            token: [UInt8](registration.token), bundle: [UInt8](registration.bundle),
            kind: registration.kind.rawValue, environment: registration.environment.rawValue,
            registeredMs: context.wallClockMs, isSetAside: false)
        guard !register(device) else { return }
        context.notices.appendBounded(.deviceRefused(clientIdentifier: client.array, .noRoom))
    }

    // MARK: Over HTTP

    /// The device of a client; `nil` without one.
    public func device(of clientID: String) -> DeviceDetail? {
        Array(clientID.utf8).withUnsafeBytes { devices.find($0) }.map { detail(of: $0) }
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
            clientIdentifier: Array(clientID.utf8),
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
        guard let device = Array(clientID.utf8).withUnsafeBytes({ devices.find($0) }) else {
            reply(.success(false))
            return
        }
        guard !commits.holdsMessages else {
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
        var place = min(first, devices.endIndex)
        let stop = place + min(16_384, devices.endIndex - place)
        while place < stop, page.devices.count < limit {
            if devices[place].generation != 0 { page.devices.append(detail(of: place)) }
            place += 1
        }
        if place < devices.endIndex { page.next = "\(place)" }
        return page
    }

    private func detail(of place: UInt32) -> DeviceDetail {
        let record = devices[place]
        let owed = record.owed == noIndex ? nil : wakes[record.owed].state
        let state: DeviceDetail.WakeState =
            switch owed {
            case nil: record.isSetAside ? .setAside : .none
            case .watching: .watched
            case .waiting, .reading: .waiting
            case .ready: .ready
            case .sent: .sent
            }
        return DeviceDetail(
            clientID: devices.clientIdentifier(of: place), device: devices.device(place),
            wake: state,
            waiting: record.owed == noIndex ? 0 : Int(wakes[record.owed].count),
            lastOutcome: record.lastOutcome.map(\.name), lastReason: devices.lastReason(of: place),
            lastAnsweredAtMs: record.answeredMs == 0 ? nil : record.answeredMs)
    }

    // MARK: Changes

    /// Registers a device in place of the client's earlier one; false when there is no room for it.
    /// The caller ends the group of records.
    private mutating func register(_ device: StoredDevice) -> Bool {
        let existing = device.clientIdentifier.withUnsafeBytes { devices.find($0) }
        let former = existing.map { devices.stored($0) }
        let freed = former.map { Devices.bytes(of: $0) } ?? 0
        guard devices.bytes - freed + Devices.bytes(of: device) <= context.limits.deviceBytes else {
            wakeCounters.refused += 1
            return false
        }
        if let kind = Device.Kind(rawValue: device.kind),
            let other = device.token.withUnsafeBytes({ devices.find(token: $0, kind: kind) }),
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
        guard let place = devices.add(device, pool: pool) else { return false }
        commits.records.device(device)
        if device.woken.session != 0 { record(device.woken, of: place) }
        serve(place)
        return true
    }

    /// Has the device woken for its client's session, if there is one, and for what waits in it.
    private mutating func serve(_ device: UInt32) {
        let client = devices[device].identifier
        guard let session = client.withBytes({ sessions.find($0) }) else { return }
        setDevice(of: session)
        if sessions[session].hasDevice { examineQueue(of: session, device) }
    }

    /// Notes whether a session's client has a device that is woken for it.
    mutating func setDevice(of session: UInt32) {
        let device = sessions[session].clientIdentifier.withBytes { devices.find($0) }
        sessions[session].hasDevice =
            device.map { devices.serves($0, userName: sessions[session].ownerName) } ?? false
    }

    /// The device that is woken for a session; `nil` without one.
    func device(for session: UInt32) -> UInt32? {
        guard sessions[session].hasDevice else { return nil }
        return sessions[session].clientIdentifier.withBytes { devices.find($0) }
    }

    /// The session for which a device is woken; `nil` without one.
    func session(for device: UInt32) -> UInt32? {
        devices[device].identifier.withBytes { sessions.find($0) }
            .flatMap { sessions[$0].hasDevice ? $0 : nil }
    }

    /// Removes a device, also from the store. The caller ends the group of records.
    mutating func forgetDevice(_ device: UInt32) {
        devices[device].identifier.withBytes { commits.records.deviceRemoved(of: $0) }
        removeDevice(device)
    }

    private mutating func removeDevice(_ device: UInt32) {
        endWake(of: device)
        if let session = session(for: device) { sessions[session].hasDevice = false }
        devices.remove(device, pool: pool)
    }

    /// Restores a device, behind the sessions.
    mutating func restoreDevice(_ stored: StoredDevice) {
        guard let device = devices.add(stored, pool: pool) else { return }
        guard let session = devices[device].identifier.withBytes({ sessions.find($0) }) else {
            return
        }
        setDevice(of: session)
    }
}
