import MQTTCodec

/// What a CONNECT of MQTT 5.0 says besides that which earlier versions say, too.
package struct ClientTerms: BitwiseCopyable {
    /// Seconds, as CONNECT says: 0 without the property, the largest number for a session without
    /// end.
    package let sessionExpiry: UInt32
    package let receiveMaximum: UInt16
    /// Bytes; the largest number when the client sets no limit.
    package let maximumPacketSize: UInt32
    package let requestsProblemInformation: Bool
    package let hasAuthenticationMethod: Bool
    /// Times of the client's will; none without one.
    package let willTimes: WillTimes
    /// Properties that are passed on with the will, in the packet.
    package let willProperties: Properties

    package init(_ connect: Connect5) {
        let values = connect.values
        sessionExpiry = values.sessionExpiryInterval
        receiveMaximum = values.receiveMaximum
        maximumPacketSize = values.maximumPacketSize ?? .max
        requestsProblemInformation = values.requestProblemInformation
        hasAuthenticationMethod = values.authenticationMethod != nil
        willTimes = WillTimes(
            delay: connect.will?.delayInterval ?? 0, expiry: connect.will?.messageExpiryInterval)
        willProperties = connect.will?.properties ?? .none
    }
}

/// The times of a will of MQTT 5.0, in seconds.
package struct WillTimes: Hashable, BitwiseCopyable {
    /// Between the end of the connection and the publication, unless the session ends first.
    package var delay: UInt32 = 0
    /// Between the publication and the end of the message; `nil` for one that does not expire.
    package var expiry: UInt32?

    package static var none: WillTimes { WillTimes() }
}

extension Connect {
    /// The part of a CONNECT of 5.0 that earlier versions have too. Clean start stands for clean
    /// session; whether the session outlives its connection is a matter of ``ClientTerms``.
    package init(_ connect: Connect5) {
        self.init(
            version: .v5, cleanSession: connect.cleanStart, keepAlive: connect.keepAlive,
            clientID: connect.clientID,
            will: connect.will.map {
                Will(topic: $0.topic, message: $0.message, qos: $0.qos, retain: $0.retain)
            }, userName: connect.userName, password: connect.password)
    }
}
