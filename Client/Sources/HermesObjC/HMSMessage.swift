#if canImport(ObjectiveC)
    import Foundation
    import HermesKit

    /// The guarantee of delivery, for Objective-C.
    @objc(HMSQoS)
    public enum HMSQoS: Int, Sendable {
        /// Gone with the connection.
        case atMostOnce = 0
        /// Arrives; a message without sequence or name perhaps twice.
        case atLeastOnce = 1
        /// Arrives once.
        case exactlyOnce = 2

        init(_ qos: HermesClient.QoS) {
            switch qos {
            case .atMostOnce: self = .atMostOnce
            case .atLeastOnce: self = .atLeastOnce
            case .exactlyOnce: self = .exactlyOnce
            }
        }

        var qos: HermesClient.QoS {
            switch self {
            case .atMostOnce: .atMostOnce
            case .atLeastOnce: .atLeastOnce
            case .exactlyOnce: .exactlyOnce
            }
        }
    }

    /// A message for the app, in Objective-C. Every one is to be acknowledged.
    @objc(HMSDelivery)
    public final class HMSDelivery: NSObject, Sendable {
        private let delivery: HermesClient.Delivery

        init(_ delivery: HermesClient.Delivery) { self.delivery = delivery }

        /// The topic on which it came.
        @objc public var topic: String { delivery.topic }
        /// The bytes as they came.
        @objc public var payload: Data { delivery.data }
        /// The QoS at which it came.
        @objc public var qos: HMSQoS { HMSQoS(delivery.qos) }
        /// The broker had kept it for those who subscribe later.
        @objc public var isRetained: Bool { delivery.isRetained }
        /// The broker's name for it; `nil` without an envelope.
        @objc public var messageID: String? { delivery.envelope?.messageID }
        /// The channel in which it has a number; `nil` without one.
        @objc public var channel: String? {
            delivery.envelope.flatMap { $0.sequence == nil ? nil : $0.channel }
        }
        /// The number in the channel; 0 without one.
        @objc public var sequence: UInt64 { delivery.envelope?.sequence ?? 0 }
        /// An order status as JSON; `nil` for other messages.
        @objc public var orderStatusJSON: String? {
            delivery.orderStatus == nil ? nil : delivery.json
        }

        /// The app is done with the message; see `HermesClient.Delivery.acknowledge`.
        @objc public func acknowledge() { delivery.acknowledge() }
    }
#endif
