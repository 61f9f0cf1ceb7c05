/// A client's device, and the wake that it is owed.
public struct DeviceDetail: Sendable, Equatable {
    public enum WakeState: String, Sendable {
        /// No wake is owed.
        case none
        /// The client is connected and has not answered all that asks for a wake.
        case watched
        /// Owed, and due later.
        case waiting
        /// Owed, and held back by quiet hours or a cap.
        case held
        /// Due, and not taken by a sender yet.
        case ready
        /// Taken by its sender, which has not answered yet.
        case sent
        /// The push service does not know the token, so nothing is sent until it is registered again.
        case setAside = "set_aside"
    }

    public var clientID: String
    public var device: Device
    public var wake: WakeState
    /// Messages that ask for the wake.
    public var waiting: Int
    /// UNIX time in milliseconds at which ``WakeState/held`` ends, as far as is known now; `nil` for
    /// another state.
    public var heldUntilMs: Int64?
    /// What became of the last wake since the start, with the push service's word for it; `nil`
    /// without one.
    public var lastOutcome: String?
    public var lastReason: String?
    /// UNIX time in milliseconds.
    public var lastAnsweredAtMs: Int64?

    public init(
        clientID: String, device: Device, wake: WakeState, waiting: Int, lastOutcome: String? = nil,
        lastReason: String? = nil, lastAnsweredAtMs: Int64? = nil
    ) {
        self.clientID = clientID
        self.device = device
        self.wake = wake
        self.waiting = waiting
        self.lastOutcome = lastOutcome
        self.lastReason = lastReason
        self.lastAnsweredAtMs = lastAnsweredAtMs
    }
}

/// A page of devices.
public struct DevicePage: Sendable, Equatable {
    public var devices: [DeviceDetail] = []
    /// Where the next page begins; `nil` at the end.
    public var next: String?

    public init() {}
}

/// The end of a notification that an operator sent by hand.
public struct WakeTrial: Codable, Sendable, Equatable {
    /// The name of a ``WakeResult``.
    public var outcome: String
    /// The push service's word for it.
    public var reason: String?

    public init(outcome: String, reason: String? = nil) {
        self.outcome = outcome
        self.reason = reason
    }
}

/// Devices that an operator has released.
public struct ReleasedDevices: Codable, Sendable, Equatable {
    /// Devices that needed it.
    public var devices: Int

    public init(devices: Int) { self.devices = devices }
}
