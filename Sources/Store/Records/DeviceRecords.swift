/// A phone that can be woken, registered under a client identifier.
public struct StoredDevice: Hashable, Sendable {
    public var clientIdentifier: [UInt8]
    /// The user whose sessions it is woken for; `nil` for any.
    public var userName: [UInt8]?
    public var token: [UInt8]
    public var bundle: [UInt8]
    /// Kind and environment, in a form that only the shard knows.
    public var kind: UInt8
    public var environment: UInt8
    /// UNIX time in milliseconds.
    public var registeredMs: Int64
    /// True when the push service does not know the token.
    public var isSetAside: Bool
    /// How far the device has been woken; nothing for a new one.
    public var woken: Woken

    /// All messages of a session below a position of its queue that a wake has been sent for.
    public struct Woken: Hashable, Sendable, BitwiseCopyable {
        /// 0 for none.
        public var session: UInt64
        public var position: UInt64

        public init(session: UInt64 = 0, position: UInt64 = 0) {
            self.session = session
            self.position = position
        }
    }

    public init(
        clientIdentifier: [UInt8], userName: [UInt8]?, token: [UInt8], bundle: [UInt8],
        kind: UInt8, environment: UInt8, registeredMs: Int64, isSetAside: Bool,
        woken: Woken = Woken()
    ) {
        self.clientIdentifier = clientIdentifier
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

/// A segment's changes of devices, each by client identifier.
public struct DeviceChanges: Hashable, Sendable {
    /// Devices as they were registered last, and how far they were woken since; `nil` for one that
    /// was removed last.
    public var devices: [[UInt8]: StoredDevice?] = [:]
    /// How far devices of earlier segments were woken, where the segment does not register them.
    public var woken: [[UInt8]: StoredDevice.Woken] = [:]

    public init() {}

    public var isEmpty: Bool { devices.isEmpty && woken.isEmpty }

    mutating func register(_ device: StoredDevice) {
        woken[device.clientIdentifier] = nil
        devices[device.clientIdentifier] = .some(device)
    }

    mutating func remove(_ clientIdentifier: [UInt8]) {
        woken[clientIdentifier] = nil
        devices[clientIdentifier] = .some(nil)
    }

    mutating func wake(_ clientIdentifier: [UInt8], _ woken: StoredDevice.Woken) {
        guard let changed = devices[clientIdentifier] else {
            self.woken[clientIdentifier] = woken
            return
        }
        guard var device = changed else { return }
        device.woken = woken
        devices[clientIdentifier] = .some(device)
    }

    /// Applies the changes of the following segment.
    mutating func merge(_ later: DeviceChanges) {
        for (identifier, device) in later.devices {
            if let device { register(device) } else { remove(identifier) }
        }
        for (identifier, woken) in later.woken { wake(identifier, woken) }
    }
}
