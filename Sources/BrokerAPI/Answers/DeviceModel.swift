/// A device as the HTTP API shows it. Of the token, a secret of the user, it has the beginning only.
public struct DeviceModel: Codable, Sendable, Equatable {
    public var clientID: String
    /// Tells it from others of the client; `nil` for that without a name.
    public var name: String?
    public var kind: String
    public var token: String
    public var bundle: String
    public var environment: String
    public var userName: String?
    /// `nil` for that of the configuration.
    public var timeZone: String?
    public var registeredAtMs: Int64
    /// A ``DeviceDetail/WakeState``.
    public var wake: String
    /// Messages that ask for the wake.
    public var waiting: Int
    /// UNIX time in milliseconds at which quiet hours or a cap let it go.
    public var heldUntilMs: Int64?
    public var lastOutcome: String?
    public var lastReason: String?
    public var lastAnsweredAtMs: Int64?

    enum CodingKeys: String, CodingKey {
        case clientID = "client_id"
        case name, kind, token, bundle, environment
        case userName = "user_name"
        case timeZone = "time_zone"
        case registeredAtMs = "registered_at_ms"
        case wake, waiting
        case heldUntilMs = "due_at_ms"
        case lastOutcome = "last_outcome"
        case lastReason = "last_reason"
        case lastAnsweredAtMs = "last_answered_at_ms"
    }

    public init(_ detail: DeviceDetail) {
        clientID = detail.clientID
        name = detail.device.name.isEmpty ? nil : detail.device.name
        kind = detail.device.kind.name
        token = detail.device.cutToken
        bundle = detail.device.bundle
        environment = detail.device.environment.name
        userName = detail.device.userName
        timeZone = detail.device.timeZone.isEmpty ? nil : detail.device.timeZone
        registeredAtMs = detail.device.registeredAtMs
        wake = detail.wake.rawValue
        waiting = detail.waiting
        heldUntilMs = detail.heldUntilMs
        lastOutcome = detail.lastOutcome
        lastReason = detail.lastReason
        lastAnsweredAtMs = detail.lastAnsweredAtMs
    }
}

/// Some devices, in no particular order. A page may be short, or empty, although others follow.
public struct DeviceList: Codable, Sendable, Equatable {
    public var devices: [DeviceModel]
    /// The cursor of the next page; `nil` on the last.
    public var next: String?

    public init(devices: [DeviceModel], next: String?) {
        self.devices = devices
        self.next = next
    }
}

extension Device {
    /// Characters of a token that are shown.
    private static var shown: Int { 8 }

    fileprivate var cutToken: String {
        let text =
            kind == .apns
            ? token.prefix(Self.shown).map { byte in
                let digits = String(byte, radix: 16)
                return digits.count == 1 ? "0" + digits : digits
            }.joined() : String(decoding: token, as: UTF8.self)
        return String(text.prefix(Self.shown)) + "…"
    }
}

extension Device.Kind {
    public var name: String {
        switch self {
        case .apns: "apns"
        case .webhook: "webhook"
        case .fcm: "fcm"
        }
    }
}

extension Device.Environment {
    public var name: String {
        switch self {
        case .production: "production"
        case .sandbox: "sandbox"
        }
    }
}
