import BrokerAPI
import BrokerCore
import Store
import Structures

/// Phones that can be woken, at most ``Device/mostOfClient`` of each client identifier, with or without
/// a session.
///
/// A token belongs to one client: registering it for another takes it from the first.
struct Devices: ~Copyable {
    struct Record: BitwiseCopyable {
        let identifier: CompactBytes
        /// The user whose sessions it is woken for; any without ``hasUser``.
        let user: CompactBytes
        let token: CompactBytes
        let registeredMs: Int64
        /// Index of the app's name.
        let bundle: UInt32
        /// Index of the device's own name, which is usually empty.
        let name: UInt32
        /// Index of the name of the user's time zone, which may be empty.
        let zone: UInt32
        /// The next device of the client; ``noIndex`` at the last.
        var sibling: UInt32 = noIndex
        /// Tells the record from an earlier one at the same place; 0 while the place is free.
        let generation: UInt32
        let kind: Device.Kind
        let environment: Device.Environment
        /// What its token is for.
        let service: AppService
        let hasUser: Bool
        /// True when the push service does not know the token.
        var isSetAside: Bool
        /// True while it is in ``Features/notedBadges``.
        var isBadgeNoted = false
        /// The form and the end of the last wake; `nil` before the first.
        var lastOutcome: WakeResult?
        /// Index of the push service's word for it; ``noIndex`` without one.
        var lastReason: UInt32 = noIndex
        /// The owed wake; ``noIndex`` without one.
        var owed: UInt32 = noIndex
        /// Messages that need no further wake.
        var woken: StoredDevice.Woken
        /// UNIX time in milliseconds of the answer to the last wake; 0 before.
        var answeredMs: Int64 = 0
    }

    struct Text: BitwiseCopyable {
        let text: CompactBytes
        var uses: UInt32
    }

    /// Bytes that a device counts besides its texts, with a wake that it may be owed and with the
    /// place of its user in ``userBytes``.
    static var recordBytes: Int { 356 }
    /// The most different words of push services that are kept.
    private static var mostReasons: Int { 64 }

    /// Never read; see the same in ``Shard``.
    private let addressOnly: any Sendable = ()
    private let hash: KeyedHash
    private var records = Slab<Record>()
    private var byIdentifier = HashIndex()
    private var byToken = HashIndex()
    private var bundles = Slab<Text>()
    private var byBundle = HashIndex()
    private var reasons: [String] = []
    private var generation: UInt32 = 0
    private(set) var bytes = 0
    /// Bytes by user, in units of 64; by all who have none, too.
    private var userBytes = KeyCounts()

    init(hash: KeyedHash) { self.hash = hash }

    var count: Int { records.count }
    /// The end of the places of devices.
    var endIndex: UInt32 { records.endIndex }

    subscript(place: UInt32) -> Record {
        @inline(__always) unsafeAddress { UnsafePointer(records.pointer(to: place)) }
        @inline(__always) unsafeMutableAddress { records.pointer(to: place) }
    }

    // MARK: Finding

    /// The place of a client's first device, after which its others come
    /// (``Record/sibling``).
    func first(of identifier: UnsafeRawBufferPointer) -> UInt32? {
        guard records.count > 0 else { return nil }
        return byIdentifier.find(hash(identifier)) { records[$0].identifier.equals(identifier) }
    }

    /// The place of a client's device of a name.
    func find(_ identifier: [UInt8], named name: [UInt8]) -> UInt32? {
        var next = identifier.withUnsafeBytes { first(of: $0) }
        while let device = next {
            let isNamed = name.withUnsafeBytes {
                bundles[records[device].name].text.equals($0)
            }
            if isNamed { return device }
            next = sibling(of: device)
        }
        return nil
    }

    /// The client's next device.
    func sibling(of place: UInt32) -> UInt32? {
        let next = records[place].sibling
        return next == noIndex ? nil : next
    }

    /// True when a client has as many devices as it may.
    func hasMost(of identifier: [UInt8]) -> Bool {
        var (count, next) = (0, identifier.withUnsafeBytes { first(of: $0) })
        while let device = next {
            count += 1
            next = sibling(of: device)
        }
        return count >= Device.mostOfClient
    }

    /// The place of the device with a token of this kind.
    func find(token: UnsafeRawBufferPointer, kind: Device.Kind) -> UInt32? {
        byToken.find(hash(token)) { records[$0].kind == kind && records[$0].token.equals(token) }
    }

    func isCurrent(_ handle: Handle) -> Bool {
        handle.index < records.endIndex && handle.generation != 0
            && records[handle.index].generation == handle.generation
    }

    func handle(of place: UInt32) -> Handle {
        Handle(index: place, generation: records[place].generation)
    }

    /// The lane of a device's wakes.
    func lane(of place: UInt32) -> OwedWakes.LaneKey {
        let record = records[place]
        return OwedWakes.LaneKey(
            kind: record.kind, environment: record.environment, bundle: record.bundle)
    }

    /// The place of an app's name; `nil` when no device has it.
    func find(bundle: String) -> UInt32? {
        guard bundles.count > 0 else { return nil }
        return Array(bundle.utf8).withUnsafeBytes { bytes in
            byBundle.find(hash(bytes)) { bundles[$0].text.equals(bytes) }
        }
    }

    /// True when the device is woken by notifications of this form.
    func takes(_ wake: WakeKind, _ place: UInt32) -> Bool {
        records[place].service.takes(wake, for: records[place].kind)
    }

    /// True when the device is woken for a session of this user.
    func serves(_ place: UInt32, userName: CompactBytes?) -> Bool {
        guard records[place].hasUser else { return true }
        guard let userName else { return false }
        return userName.withBytes { records[place].user.equals($0) }
    }

    // MARK: Changes

    /// Bytes that a device counts.
    static func bytes(of device: StoredDevice) -> Int {
        recordBytes + device.clientID.count + (device.userName?.count ?? 0)
            + device.token.count
    }

    private static func units(of device: StoredDevice) -> UInt32 {
        UInt32(clamping: (bytes(of: device) + 63) / 64)
    }

    private func key(ofUser name: [UInt8]?) -> UInt32 {
        let hashed = name.map { $0.withUnsafeBytes { hash($0) } } ?? 0
        return max(1, UInt32(truncatingIfNeeded: hashed))
    }

    /// Decides whether there is room for a device, in all and for its user.
    ///
    /// - Parameters:
    ///   - device: The new device.
    ///   - former: The one in whose place it comes.
    ///   - limit: The most bytes of all devices.
    /// - Returns: True when there is.
    func hasRoom(for device: StoredDevice, replacing former: StoredDevice?, limit: Int) -> Bool {
        let freed = former.map { Self.bytes(of: $0) } ?? 0
        let isOfUser = former.map { $0.userName == device.userName } ?? false
        let own = 64 * userBytes[key(ofUser: device.userName)]
        return SharedLimit.admits(
            Self.bytes(of: device), own: isOfUser ? max(0, own - freed) : own,
            total: bytes - freed, limit: limit)
    }

    /// Adds a device of a client that has none of its name; `nil` when one of its numbers is unknown.
    mutating func add(_ device: StoredDevice, pool: BytePool) -> UInt32? {
        guard let kind = Device.Kind(rawValue: device.kind),
            let environment = Device.Environment(rawValue: device.environment)
        else { return nil }
        generation = generation == UInt32.max >> 8 ? 1 : generation + 1
        let place = records.insert(
            Record(
                identifier: compact(device.clientID, pool),
                user: compact(device.userName ?? [], pool), token: compact(device.token, pool),
                registeredMs: device.registeredMs, bundle: use(device.bundle, pool),
                name: use(device.name, pool), zone: use(device.timeZone, pool),
                generation: generation, kind: kind, environment: environment,
                service: AppService(of: device.bundle, for: kind),
                hasUser: device.userName != nil, isSetAside: device.isSetAside,
                woken: device.woken))
        if let first = device.clientID.withUnsafeBytes({ first(of: $0) }) {
            records[place].sibling = records[first].sibling
            records[first].sibling = place
        } else {
            byIdentifier.insert(device.clientID.withUnsafeBytes { hash($0) }, place)
        }
        byToken.insert(device.token.withUnsafeBytes { hash($0) }, place)
        bytes += Self.bytes(of: device)
        userBytes.add(key(ofUser: device.userName), Self.units(of: device))
        return place
    }

    /// Removes a device, which no wake is owed any more.
    mutating func remove(_ place: UInt32, pool: BytePool) {
        let record = records[place]
        let former = stored(place)
        userBytes.remove(key(ofUser: former.userName), Self.units(of: former))
        unlink(place)
        byToken.remove(record.token.withBytes { hash($0) }, place)
        bytes -=
            Self.recordBytes + record.identifier.count + record.user.count + record.token.count
        record.identifier.destroy(in: pool)
        record.user.destroy(in: pool)
        record.token.destroy(in: pool)
        release(record.bundle, pool)
        release(record.name, pool)
        release(record.zone, pool)
        records[place] = Record(
            identifier: CompactBytes(), user: CompactBytes(), token: CompactBytes(),
            registeredMs: 0, bundle: noIndex, name: noIndex, zone: noIndex, generation: 0,
            kind: .apns,
            environment: .production, service: .usual, hasUser: false, isSetAside: false,
            woken: StoredDevice.Woken())
        records.remove(place)
    }

    /// Takes a device out of the list of its client's.
    private mutating func unlink(_ place: UInt32) {
        let identifier = records[place].identifier
        guard let first = identifier.withBytes({ self.first(of: $0) }) else { return }
        guard first == place else {
            var before = first
            while let next = sibling(of: before), next != place { before = next }
            records[before].sibling = records[place].sibling
            return
        }
        let hashed = identifier.withBytes { hash($0) }
        byIdentifier.remove(hashed, place)
        if let next = sibling(of: place) { byIdentifier.insert(hashed, next) }
    }

    private func compact(_ bytes: [UInt8], _ pool: BytePool) -> CompactBytes {
        bytes.withUnsafeBytes { CompactBytes($0, pool: pool) }
    }

    /// Keeps a name of an app or a device, each text once.
    private mutating func use(_ name: [UInt8], _ pool: BytePool) -> UInt32 {
        name.withUnsafeBytes { bytes in
            let found = byBundle.find(hash(bytes)) { bundles[$0].text.equals(bytes) }
            if let found {
                bundles[found].uses += 1
                return found
            }
            let place = bundles.insert(Text(text: CompactBytes(bytes, pool: pool), uses: 1))
            byBundle.insert(hash(bytes), place)
            return place
        }
    }

    private mutating func release(_ place: UInt32, _ pool: BytePool) {
        bundles[place].uses -= 1
        guard bundles[place].uses == 0 else { return }
        byBundle.remove(bundles[place].text.withBytes { hash($0) }, place)
        bundles[place].text.destroy(in: pool)
        bundles.remove(place)
    }

    /// Notes the end of a wake; of a push service's words the first ``mostReasons`` are kept.
    mutating func answered(_ place: UInt32, _ outcome: WakeResult, _ reason: String, atMs: Int64) {
        records[place].lastOutcome = outcome
        records[place].answeredMs = atMs
        records[place].lastReason = noIndex
        guard !reason.isEmpty else { return }
        if let index = reasons.firstIndex(of: reason) {
            records[place].lastReason = UInt32(index)
        } else if reasons.count < Self.mostReasons {
            records[place].lastReason = UInt32(reasons.count)
            reasons.append(reason)
        }
    }

    // MARK: Copies

    /// What the store keeps of a device.
    func stored(_ place: UInt32) -> StoredDevice {
        let record = records[place]
        var device = StoredDevice(
            clientID: record.identifier.array,
            userName: record.hasUser ? record.user.array : nil, token: record.token.array,
            bundle: bundles[record.bundle].text.array, kind: record.kind.rawValue,
            environment: record.environment.rawValue, registeredMs: record.registeredMs,
            isSetAside: record.isSetAside, woken: record.woken)
        device.name = bundles[record.name].text.array
        device.timeZone = bundles[record.zone].text.array
        return device
    }

    func device(_ place: UInt32) -> Device {
        let record = records[place]
        return Device(
            name: String(decoding: bundles[record.name].text.array, as: UTF8.self),
            kind: record.kind, token: record.token.array,
            bundle: String(decoding: bundles[record.bundle].text.array, as: UTF8.self),
            environment: record.environment,
            userName: record.hasUser ? String(decoding: record.user.array, as: UTF8.self) : nil,
            timeZone: String(decoding: bundles[record.zone].text.array, as: UTF8.self),
            registeredAtMs: record.registeredMs)
    }

    /// What a log line says of a device.
    func reported(_ place: UInt32) -> ReportedDevice {
        let record = records[place]
        return ReportedDevice(
            clientID: record.identifier.array, name: bundles[record.name].text.array,
            bundle: bundles[record.bundle].text.array)
    }

    /// The name of the user's time zone; empty for that of the configuration.
    func timeZone(of place: UInt32) -> [UInt8] { bundles[records[place].zone].text.array }

    func lastReason(of place: UInt32) -> String? {
        let index = records[place].lastReason
        return index == noIndex ? nil : reasons[Int(index)]
    }

    func clientID(of place: UInt32) -> String {
        String(decoding: records[place].identifier.array, as: UTF8.self)
    }
}
