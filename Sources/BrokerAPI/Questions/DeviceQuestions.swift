/// The device of a client by its name, with the wake that it is owed; `nil` without one.
public struct ShowDevice: BrokerQuestion {
    public typealias Answer = DeviceDetail?

    public let clientID: String
    public let name: String

    public init(clientID: String, name: String = "") {
        self.clientID = clientID
        self.name = name
    }
}

/// Registers a client's device; answered once that is stored.
public struct SetDevice: BrokerQuestion {
    public enum Answer: Sendable, Equatable {
        case stored
        /// There is no room for it, or its client has as many as it may.
        case noRoom
        /// The time zone that it names is none that the broker knows.
        case unknownTimeZone
    }

    public let clientID: String
    public let device: Device

    public init(clientID: String, device: Device) {
        self.clientID = clientID
        self.device = device
    }
}

/// Forgets a client's device; answered once that is stored: false without one.
public struct RemoveDevice: BrokerQuestion {
    public typealias Answer = Bool

    public let clientID: String
    public let name: String

    public init(clientID: String, name: String = "") {
        self.clientID = clientID
        self.name = name
    }
}

/// Devices in no particular order, or all of a client by name.
public struct ListDevices: BrokerQuestion {
    public typealias Answer = DevicePage

    /// `nil` for those of all clients.
    public let clientID: String?
    /// 0, or the previous page's `next`.
    public let from: UInt32
    public let limit: Int

    public init(ofClient clientID: String) {
        self.clientID = clientID
        from = 0
        limit = Device.mostOfClient
    }

    public init(from: UInt32, limit: Int) {
        clientID = nil
        self.from = from
        self.limit = limit
    }
}

/// Sends a notification to a client's device now, and tells its end: `nil` without a device.
public struct TryWake: BrokerQuestion {
    public typealias Answer = WakeTrial?

    public let clientID: String
    public let name: String

    public init(clientID: String, name: String = "") {
        self.clientID = clientID
        self.name = name
    }
}

/// What an operator has done with devices whose wakes do not go out.
public enum DeviceRelease: String, Sendable, CaseIterable {
    /// Devices that a push service has refused are sent to again.
    case resume
    /// Wakes that pause before their next attempt are tried now.
    case retry
}

/// Releases a client's device; answered once that is stored: false when it needs none, `nil` without a
/// device.
public struct ReleaseDevice: BrokerQuestion {
    public typealias Answer = Bool?

    public let clientID: String
    public let name: String
    public let release: DeviceRelease

    public init(clientID: String, name: String = "", _ release: DeviceRelease) {
        self.clientID = clientID
        self.name = name
        self.release = release
    }
}

/// Releases some of the devices of an app in an environment; answered once that is stored.
public struct ReleaseDevices: BrokerQuestion {
    public struct Answer: Sendable {
        /// Devices that needed it.
        public var released: Int
        /// Where the next part begins; `nil` at the end.
        public var next: UInt32?

        public init(released: Int, next: UInt32? = nil) {
            self.released = released
            self.next = next
        }
    }

    public let release: DeviceRelease
    /// `nil`: all apps, and both environments.
    public let bundle: String?
    public let environment: Device.Environment?
    /// 0, or the previous answer's ``Answer/next``.
    public let from: UInt32

    public init(
        _ release: DeviceRelease, bundle: String?, environment: Device.Environment?, from: UInt32
    ) {
        self.release = release
        self.bundle = bundle
        self.environment = environment
        self.from = from
    }
}
