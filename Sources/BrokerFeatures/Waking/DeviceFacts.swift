import BrokerAPI
import BrokerCore
import Store

/// A phone that can be woken, registered under a client identifier.
struct StoredDevice: Hashable, Sendable {
    var clientID: [UInt8]
    /// Tells it from others of the client; usually empty.
    var name: [UInt8] = []
    /// The user whose sessions it is woken for; `nil` for any.
    var userName: [UInt8]?
    var token: [UInt8]
    var bundle: [UInt8]
    /// Kind and environment, in a form that only the shard knows.
    var kind: UInt8
    var environment: UInt8
    /// UNIX time in milliseconds.
    var registeredMs: Int64
    /// The user's time zone; empty for that of the configuration.
    var timeZone: [UInt8] = []
    /// True when the push service does not know the token.
    var isSetAside: Bool
    /// How far the device has been woken; nothing for a new one.
    var woken: Woken

    /// All messages of a session below a position of its queue that a wake has been sent for.
    struct Woken: Hashable, Sendable, BitwiseCopyable {
        /// 0 for none.
        var session: UInt64
        var position: UInt64
        /// UNIX time in milliseconds at which the push service took the last wake; 0 for never.
        var atMs: Int64
        /// Messages below the position that asked for a wake and were not fetched at that time.
        var told: UInt32
        /// True when a notification has put a number on the app's icon that is not cleared.
        var showsBadge: Bool
        /// Alerts of the time that ``WakeCap`` counts, and when that began (UNIX milliseconds).
        var alerts: UInt16 = 0
        var alertsSinceMs: Int64 = 0

        init(
            session: UInt64 = 0, position: UInt64 = 0, atMs: Int64 = 0, told: UInt32 = 0,
            showsBadge: Bool = false
        ) {
            self.session = session
            self.position = position
            self.atMs = atMs
            self.told = told
            self.showsBadge = showsBadge
        }
    }

    init(
        clientID: [UInt8], userName: [UInt8]?, token: [UInt8], bundle: [UInt8],
        kind: UInt8, environment: UInt8, registeredMs: Int64, isSetAside: Bool,
        woken: Woken = Woken()
    ) {
        self.clientID = clientID
        self.userName = userName
        self.token = token
        self.bundle = bundle
        self.kind = kind
        self.environment = environment
        self.registeredMs = registeredMs
        self.isSetAside = isSetAside
        self.woken = woken
    }
}

/// Devices have the client identifier as key, and so has how far a device was woken, in a table of
/// its own. The name of a device that has one follows after a NUL, which no client identifier holds
/// [MQTT-1.5.3-2].
extension WriteBatch {
    /// A new device has woken nobody, whatever ``StoredDevice/woken`` is.
    mutating func device(_ device: StoredDevice) {
        let owner = FactOwner(device.clientID)
        fact(.device, of: owner) {
            $0.putRest(Self.key(of: device.clientID, device.name))
        } value: {
            $0.put(device.userName != nil)
            $0.putText(device.userName ?? [])
            $0.putText(device.token)
            $0.putText(device.bundle)
            $0.put(device.kind)
            $0.put(device.environment)
            $0.put(device.registeredMs)
            $0.put(device.isSetAside)
            if !device.timeZone.isEmpty { $0.putText(device.timeZone) }
        }
        factRemoved(.woken, of: owner) { $0.putRest(Self.key(of: device.clientID, device.name)) }
    }

    mutating func deviceRemoved(of clientID: [UInt8], named name: [UInt8]) {
        let owner = FactOwner(clientID)
        factRemoved(.device, of: owner) { $0.putRest(Self.key(of: clientID, name)) }
        factRemoved(.woken, of: owner) { $0.putRest(Self.key(of: clientID, name)) }
    }

    private static func key(of clientID: [UInt8], _ name: [UInt8]) -> [UInt8] {
        name.isEmpty ? clientID : clientID + [0] + name
    }

    mutating func woken(
        of clientID: [UInt8], named name: [UInt8], _ woken: StoredDevice.Woken
    ) {
        fact(.woken, of: FactOwner(clientID)) {
            $0.putRest(Self.key(of: clientID, name))
        } value: {
            $0.put(woken.session)
            $0.put(woken.position)
            $0.put(woken.atMs)
            $0.put(woken.told)
            $0.put(woken.showsBadge)
            guard woken.alerts > 0 else { return }
            $0.put(UInt32(woken.alerts))
            $0.put(woken.alertsSinceMs)
        }
    }
}

extension StoredDevice {
    init(_ fact: StoredFact) throws(DamagedFact) {
        var value = FactReader(fact.value)
        let hasUserName = try value.flag()
        let userName = try value.name()
        let (clientID, name) = try StoredDevice.parts(ofKey: [UInt8](fact.key))
        self.init(
            clientID: clientID, userName: hasUserName ? userName : nil,
            token: try value.name(), bundle: try value.name(), kind: try value.byte(),
            environment: try value.byte(), registeredMs: try value.time(),
            isSetAside: try value.flag())
        self.name = name
        // Earlier versions stored no time zone.
        if !value.isAtEnd { timeZone = try value.name() }
        try value.finish()
    }

    fileprivate static func parts(
        ofKey key: [UInt8]
    ) throws(DamagedFact) -> (clientID: [UInt8], name: [UInt8]) {
        let end = key.firstIndex(of: 0) ?? key.count
        let name = Array(key[min(end + 1, key.count)...])
        guard end <= Int(UInt16.max), Device.isName(name), end == key.count || !name.isEmpty else {
            throw DamagedFact()
        }
        return (Array(key[..<end]), name)
    }
}

extension StoredDevice.Woken {
    /// The client identifier, the name of its device, and how far that was woken.
    static func read(
        _ fact: StoredFact
    ) throws(DamagedFact) -> (client: [UInt8], name: [UInt8], woken: StoredDevice.Woken) {
        var value = FactReader(fact.value)
        var woken = StoredDevice.Woken(
            session: try value.number(), position: try value.number())
        // Earlier versions stored less.
        if !value.isAtEnd {
            woken.atMs = try value.time()
            woken.told = try value.count()
        }
        if !value.isAtEnd { woken.showsBadge = try value.flag() }
        if !value.isAtEnd {
            woken.alerts = UInt16(clamping: try value.count())
            woken.alertsSinceMs = try value.time()
        }
        try value.finish()
        let (client, name) = try StoredDevice.parts(ofKey: [UInt8](fact.key))
        return (client, name, woken)
    }
}

extension FactTable {
    static var device: FactTable { FactTable(number: 9, name: "device") }
    static var woken: FactTable { FactTable(number: 10, name: "woken") }
}

extension StoredTable {
    static let devices = StoredTable(
        .device,
        restore: { (shard: inout Shard, fact) throws(DamagedFact) in
            guard shard.restoreDevice(try StoredDevice(fact)) else { throw DamagedFact() }
        })

    static let woken = StoredTable(
        .woken,
        restore: { (shard: inout Shard, fact) throws(DamagedFact) in
            let (client, name, woken) = try StoredDevice.Woken.read(fact)
            if let device = shard.features.devices.find(client, named: name) {
                shard.features.devices[device].woken = woken
            }
        })
}
