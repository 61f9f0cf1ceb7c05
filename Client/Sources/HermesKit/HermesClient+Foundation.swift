#if canImport(Darwin)
    import Foundation
#else
    import FoundationEssentials
#endif

// Foundation's types for those who have them anyway. Nothing else of the client needs them.

extension HermesClientError: LocalizedError {
    /// The same sentence as ``description``, for `localizedDescription`.
    public var errorDescription: String? { description }
}

extension HermesClient.Message {
    /// A message with any bytes as payload.
    public init(
        topic: String, data: Data, qos: HermesClient.QoS = .atLeastOnce, retain: Bool = false
    ) {
        self.init(topic: topic, payload: Array(data), qos: qos, retain: retain)
    }
}

extension HermesClient.ReceivedMessage {
    /// ``payload``.
    public var data: Data { Data(payload) }

    /// ``receivedAtMilliseconds``.
    public var receivedAt: Date { Date(unixMilliseconds: receivedAtMilliseconds) }
}

extension HermesClient.Envelope {
    /// ``publishedAtMilliseconds``.
    public var publishedAt: Date { Date(unixMilliseconds: publishedAtMilliseconds) }

    /// ``expiresAtMilliseconds``.
    public var expiresAt: Date? { expiresAtMilliseconds.map { Date(unixMilliseconds: $0) } }

    /// ``payload``.
    public var data: Data { Data(payload) }
}

extension HermesClient.OrderStatusUpdate {
    /// ``updatedAtMilliseconds``.
    public var updatedAt: Date { Date(unixMilliseconds: updatedAtMilliseconds) }
}

extension HermesClient.Statistics {
    /// ``sinceMilliseconds``; `nil` before the first connection.
    public var since: Date? {
        sinceMilliseconds == 0 ? nil : Date(unixMilliseconds: sinceMilliseconds)
    }
}

extension HermesClient {
    /// As ``registerDevice(token:bundle:environment:name:timeZone:)``, with the token as UIKit gives it,
    /// and with the time zone of this phone.
    @discardableResult
    public func registerDevice(
        token: Data, bundle: String, environment: DeviceEnvironment = .production,
        name: String = "", timeZone: TimeZone = .current
    ) async throws -> PublishReceipt {
        try await registerDevice(
            token: Array(token), bundle: bundle, environment: environment, name: name,
            timeZone: timeZone.identifier)
    }
}

extension Date {
    fileprivate init(unixMilliseconds: Int64) {
        self.init(timeIntervalSince1970: Double(unixMilliseconds) / 1_000)
    }
}
