/// The device of a client, with the wake that it is owed; `nil` without one.
public struct ShowDevice: BrokerQuestion {
    public typealias Answer = DeviceDetail?

    public let clientID: String

    public init(clientID: String) { self.clientID = clientID }
}

/// Registers a client's device; answered once that is stored: false when there is no room.
public struct SetDevice: BrokerQuestion {
    public typealias Answer = Bool

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

    public init(clientID: String) { self.clientID = clientID }
}

/// Devices in no particular order.
public struct ListDevices: BrokerQuestion {
    public typealias Answer = DevicePage

    /// 0, or the previous page's `next`.
    public let from: UInt32
    public let limit: Int

    public init(from: UInt32, limit: Int) {
        self.from = from
        self.limit = limit
    }
}

/// Sends a notification to a client's device now, and tells its end: `nil` without a device.
public struct TryWake: BrokerQuestion {
    public typealias Answer = WakeTrial?

    public let clientID: String

    public init(clientID: String) { self.clientID = clientID }
}
