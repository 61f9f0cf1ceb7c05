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
    private static let mostNameBytes = 32
    private static let mostZoneBytes = 64

    /// Has the broker wake this device by Apple's push service for what waits while the app is away,
    /// in place of an earlier device of this client, or of that of this name. Call it at each start of the app, with what
    /// `didRegisterForRemoteNotificationsWithDeviceToken` gave.
    ///
    /// It is published as any message of QoS 1 is: stored, and sent when there is a connection.
    ///
    /// - Parameters:
    ///   - token: the bytes that iOS gave the app, 1 to 512 of them, not their hexadecimal form.
    ///   - bundle: the app's bundle identifier, 1 to 155 bytes.
    ///   - environment: where the token is from.
    ///   - name: tells it from other devices of this client, of which a broker takes 8, such as
    ///     another app on this phone: at most 32 letters, digits, dots, dashes and underscores.
    ///   - timeZone: the user's, by whose clock the broker keeps quiet hours, such as
    ///     `TimeZone.current.identifier`; at most 64 bytes, empty for that of the broker.
    /// - Returns: The receipt, whose acknowledgement says that the broker has stored it, or that it
    ///   could not use it, which its log then tells.
    /// - Throws: ``HermesClientError/device(_:)``, and as ``publish(_:)`` does.
    @discardableResult
    public func registerDevice(
        token: [UInt8], bundle: String, environment: DeviceEnvironment = .production,
        name: String = "", timeZone: String = ""
    ) async throws -> PublishReceipt {
        guard (1...Self.mostTokenBytes).contains(token.count) else {
            throw HermesClientError.device(
                "a device token has 1 to \(Self.mostTokenBytes) bytes, and this one \(token.count)")
        }
        let bundle = Array(bundle.utf8)
        guard (1...Self.mostBundleBytes).contains(bundle.count) else {
            throw HermesClientError.device(
                "a bundle identifier has 1 to \(Self.mostBundleBytes) bytes, and this one "
                    + "\(bundle.count)")
        }
        let name = try Self.checked(name)
        guard timeZone.utf8.count <= Self.mostZoneBytes else {
            throw HermesClientError.device(
                "the name of a time zone has at most \(Self.mostZoneBytes) bytes, and this one "
                    + "\(timeZone.utf8.count)")
        }
        // hermes.v1.DeviceRegistration: token = 1, bundle = 2, environment = 3, name = 5, time_zone = 6.
        var payload =
            Self.field(0x0A, token) + Self.field(0x12, bundle) + [0x18, environment.rawValue]
        if !name.isEmpty { payload += Self.field(0x2A, name) }
        if !timeZone.isEmpty { payload += Self.field(0x32, Array(timeZone.utf8)) }
        return try await publish(Message(topic: Self.deviceTopic, payload: payload))
    }

    /// Has the broker forget all devices of this client: nobody is woken for them any more. For a
    /// user who logs out.
    ///
    /// - Parameter name: forgets the device of this name alone.
    /// - Returns: The receipt, as ``registerDevice(token:bundle:environment:name:timeZone:)`` returns it.
    /// - Throws: ``HermesClientError/device(_:)`` for a name that no device has, and as
    ///   ``publish(_:)`` does.
    @discardableResult
    public func forgetDevice(name: String = "") async throws -> PublishReceipt {
        let name = try Self.checked(name)
        let payload = name.isEmpty ? [] : Self.field(0x2A, name)
        return try await publish(Message(topic: Self.deviceTopic, payload: payload))
    }

    private static func checked(_ name: String) throws(HermesClientError) -> [UInt8] {
        let bytes = Array(name.utf8)
        let isPlain = bytes.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
            default: false
            }
        }
        guard bytes.count <= mostNameBytes, isPlain else {
            throw HermesClientError.device(
                "a device's name has at most \(mostNameBytes) letters, digits, dots, dashes and "
                    + "underscores")
        }
        return bytes
    }

    /// A field of bytes of Protocol Buffers; at most 16,383 of them.
    private static func field(_ tag: UInt8, _ bytes: [UInt8]) -> [UInt8] {
        let length =
            bytes.count < 128
            ? [UInt8(bytes.count)] : [UInt8(bytes.count & 0x7F) | 0x80, UInt8(bytes.count >> 7)]
        return [tag] + length + bytes
    }
}
