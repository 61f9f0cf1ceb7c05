import HermesTesting
import MQTTCodec

extension PacketContent {
    /// Without payloads, for a trace or a failure.
    var short: String {
        switch self {
        case .connect(let connect):
            "CONNECT \(text(connect.clientID)) clean \(connect.cleanSession), keep alive "
                + "\(connect.keepAlive), user \(connect.userName.map(text) ?? "none"), will "
                + (connect.will.map { "\(text($0.topic)) \($0.qos) retain \($0.retain)" } ?? "none")
        case .connack(let connack):
            "CONNACK \(connack.returnCode), session present \(connack.sessionPresent)"
        case .publish(let publish):
            "PUBLISH \(publish.delivery.short) \(text(publish.topic)) retain \(publish.retain), "
                + (NumberedMessage.serial(publish.payload).map { "number \($0)" } ?? "no number")
        case .puback(let identifier): "PUBACK \(identifier.rawValue)"
        case .pubrec(let identifier): "PUBREC \(identifier.rawValue)"
        case .pubrel(let identifier): "PUBREL \(identifier.rawValue)"
        case .pubcomp(let identifier): "PUBCOMP \(identifier.rawValue)"
        case .subscribe(let identifier, let requests):
            "SUBSCRIBE \(identifier.rawValue) to "
                + requests.map { "\(text($0.filter)) at \($0.qos)" }.joined(separator: ", ")
        case .suback(let identifier, let codes): "SUBACK \(identifier.rawValue) with \(codes)"
        case .unsubscribe(let identifier, let filters):
            "UNSUBSCRIBE \(identifier.rawValue) from "
                + filters.map(text).joined(separator: ", ")
        case .unsuback(let identifier): "UNSUBACK \(identifier.rawValue)"
        case .pingreq: "PINGREQ"
        case .pingresp: "PINGRESP"
        case .disconnect: "DISCONNECT"
        }
    }
}

extension Delivery {
    var isDuplicate: Bool {
        switch self {
        case .atMostOnce: false
        case .atLeastOnce(_, let isDuplicate), .exactlyOnce(_, let isDuplicate): isDuplicate
        }
    }

    fileprivate var short: String {
        switch self {
        case .atMostOnce: "QoS 0"
        case .atLeastOnce(let identifier, _): "QoS 1 \(identifier.rawValue) DUP \(isDuplicate)"
        case .exactlyOnce(let identifier, _): "QoS 2 \(identifier.rawValue) DUP \(isDuplicate)"
        }
    }
}
