/// How phones are woken: what is owed, what became of it since the start, and how the senders are.
public struct WakeStatus: Codable, Sendable, Equatable {
    public var devices: Int
    /// Bytes that count for `limits.device_bytes`.
    public var deviceBytes: Int
    /// Devices that are owed a wake, or whose connected client is watched.
    public var owed: Int
    /// Registrations that were not taken, by reason.
    public var registrationsRefused: [String: UInt64]
    /// Messages that asked for a wake, by whether it was a new one.
    public var messages: [String: UInt64]
    /// Wakes by their end, and attempts that are repeated later.
    public var wakes: [String: UInt64]
    /// The sender to Apple; `nil` without `wakes.apns`.
    public var apns: PushFigures?
    /// The sender to Google; `nil` without `wakes.fcm`.
    public var fcm: PushFigures?
    /// The sender to the operator's webhook, its wakes by what became of them; `nil` without
    /// `wakes.webhook`.
    public var webhook: WebhookFigures?

    enum CodingKeys: String, CodingKey {
        case devices
        case deviceBytes = "device_bytes"
        case owed
        case registrationsRefused = "registrations_refused"
        case messages, wakes, apns, fcm, webhook
    }

    public init(_ figures: BrokerFigures, _ senders: WakeSenders) {
        devices = figures.devices
        deviceBytes = figures.deviceBytes
        owed = figures.wakesOwed
        registrationsRefused = figures.deviceRefusals.byLabel
        messages = figures.wakeMessages.byLabel
        wakes = figures.wakes.byLabel
        apns = senders.apns
        fcm = senders.fcm
        webhook = senders.webhook
    }
}

/// The figures of all senders of notifications.
public struct WakeSenders: Sendable, Equatable {
    /// `nil` without `wakes.apns`.
    public var apns: PushFigures?
    /// `nil` without `wakes.fcm`.
    public var fcm: PushFigures?
    /// `nil` without `wakes.webhook`.
    public var webhook: WebhookFigures?

    public init(
        apns: PushFigures? = nil, fcm: PushFigures? = nil, webhook: WebhookFigures? = nil
    ) {
        self.apns = apns
        self.fcm = fcm
        self.webhook = webhook
    }
}
