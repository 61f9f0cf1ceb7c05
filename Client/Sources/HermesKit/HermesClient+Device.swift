extension HermesClient {
    /// The half of Apple's push service that gave a device token.
    public enum DeviceEnvironment: UInt8, Sendable {
        /// Apps of the App Store and of TestFlight.
        case production = 1
        /// Apps that Xcode installed.
        case sandbox = 2
    }

    /// The topic by which a Hermes broker takes registrations; it goes to nobody.
    private static let deviceTopic = "$hermes/device"
    /// The most bytes of a token and of a bundle identifier that a broker takes.
    private static let mostTokenBytes = 512
    private static let mostBundleBytes = 155

    /// Has the broker wake this device by Apple's push service for what waits while the app is away,
    /// in place of an earlier device of this client. Call it at each start of the app, with what
    /// `didRegisterForRemoteNotificationsWithDeviceToken` gave.
    ///
    /// It is published as any message of QoS 1 is: stored, and sent when there is a connection.
    ///
    /// - Parameters:
    ///   - token: the bytes that iOS gave the app, 1 to 512 of them, not their hexadecimal form.
    ///   - bundle: the app's bundle identifier, 1 to 155 bytes.
    ///   - environment: where the token is from.
    /// - Returns: The receipt, whose acknowledgement says that the broker has stored it, or that it
    ///   could not use it, which its log then tells.
    /// - Throws: ``HermesClientError/device(_:)``, and as ``publish(_:)`` does.
    @discardableResult
    public func registerDevice(
        token: [UInt8], bundle: String, environment: DeviceEnvironment = .production
    ) async throws -> PublishReceipt {
        guard (1...Self.mostTokenBytes).contains(token.count) else {
            throw HermesClientError.device(
                "a device token has 1 to \(Self.mostTokenBytes) bytes, and this one \(token.count)")
        }
        let name = Array(bundle.utf8)
        guard (1...Self.mostBundleBytes).contains(name.count) else {
            throw HermesClientError.device(
                "a bundle identifier has 1 to \(Self.mostBundleBytes) bytes, and this one "
                    + "\(name.count)")
        }
        // hermes.v1.DeviceRegistration: token = 1, bundle = 2, environment = 3.
        let payload =
            Self.field(0x0A, token) + Self.field(0x12, name) + [0x18, environment.rawValue]
        return try await publish(Message(topic: Self.deviceTopic, payload: payload))
    }

    /// Has the broker forget this client's device: nobody is woken for it any more. For a user who
    /// logs out.
    ///
    /// - Throws: As ``publish(_:)`` does.
    @discardableResult
    public func forgetDevice() async throws -> PublishReceipt {
        try await publish(Message(topic: Self.deviceTopic, payload: []))
    }

    /// A field of bytes of Protocol Buffers; at most 16,383 of them.
    private static func field(_ tag: UInt8, _ bytes: [UInt8]) -> [UInt8] {
        let length =
            bytes.count < 128
            ? [UInt8(bytes.count)] : [UInt8(bytes.count & 0x7F) | 0x80, UInt8(bytes.count >> 7)]
        return [tag] + length + bytes
    }
}
