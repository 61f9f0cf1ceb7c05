import BrokerAPI
import BrokerCore
import Structures

/// Reads what a phone publishes to `$hermes/device`: the Protocol Buffers message
/// `hermes.v1.DeviceRegistration`.
enum DeviceReader {
    private static var topic: StaticString { "$hermes/device" }
    /// The most bytes of a registration.
    static let mostBytes = 2_048

    /// A registration; its token and bundle point into the payload.
    struct Registration {
        var token = UnsafeRawBufferPointer(start: nil, count: 0)
        var bundle = UnsafeRawBufferPointer(start: nil, count: 0)
        var environment = Device.Environment.production
        var kind = Device.Kind.apns
        var name = UnsafeRawBufferPointer(start: nil, count: 0)
        /// As the phone names it; it may be none that is known.
        var timeZone = UnsafeRawBufferPointer(start: nil, count: 0)

        /// True when it names the device that is to be forgotten, and nothing else.
        var isGoodbye: Bool { token.isEmpty && bundle.isEmpty && !name.isEmpty }
    }

    /// True for the topic by which a client registers its device.
    static func isTopic(_ topic: UnsafeRawBufferPointer) -> Bool {
        topic.elementsAreEqual(
            to: UnsafeRawBufferPointer(
                start: Self.topic.utf8Start, count: Self.topic.utf8CodeUnitCount))
    }

    /// `nil` when the bytes are no registration. Unknown fields are passed over.
    static func read(_ payload: UnsafeRawBufferPointer) -> Registration? {
        guard payload.count <= mostBytes else { return nil }
        var registration = Registration()
        var fields = ProtobufFields(payload)
        while let (field, value) = fields.next() {
            switch (field, value) {
            case (1, .bytes(let token)): registration.token = token
            case (2, .bytes(let bundle)): registration.bundle = bundle
            case (3, .number(let number)):
                // 0 stands for an environment that is not named.
                guard let number = UInt8(exactly: max(1, number)),
                    let environment = Device.Environment(rawValue: number)
                else { return nil }
                registration.environment = environment
            case (4, .number(let number)):
                guard let number = UInt8(exactly: max(1, number)),
                    let kind = Device.Kind(rawValue: number)
                else { return nil }
                registration.kind = kind
            case (5, .bytes(let name)): registration.name = name
            case (6, .bytes(let zone)): registration.timeZone = zone
            case (1...6, _): return nil
            default: continue
            }
        }
        guard !fields.isMalformed, Device.isName(registration.name) else { return nil }
        guard !registration.isGoodbye else { return registration }
        guard Device.isToken(registration.token, for: registration.kind),
            Device.isBundle(registration.bundle, for: registration.kind),
            registration.kind != .fcm || registration.environment == .production
        else { return nil }
        return registration
    }
}
