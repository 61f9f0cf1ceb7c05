import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Structures

/// A client that keeps the specification, and its record of received packets. After a reconnect it
/// re-sends unacknowledged messages in order, and it recognises repeated QoS 2 messages.
struct RacePeer {
    /// A sent message whose exchange has not ended.
    private struct Outgoing {
        var identifier: PacketIdentifier
        var topic: String
        var payload: String
        var qos: QoS
        var retain: Bool
        /// PUBREC has arrived: from now on only PUBREL is re-sent.
        var isReleased = false
    }

    let name: String
    /// The QoS of its subscription.
    let subscribedQoS: QoS
    var handle: Handle?
    /// CONNACK has come.
    var isOpen = false
    var isPersistent: Bool
    /// A CONNACK implied a persistent session.
    private var isSessionKept = false

    private var outgoing: [Outgoing] = []
    private var identifierNumber = 0

    /// Packet identifiers in use by its session, with their payloads.
    private var inFlight: [PacketIdentifier: String] = [:]
    private var unreleased: Set<PacketIdentifier> = []
    /// Acknowledgements still to send, in order.
    private var owed: [PacketContent] = []
    /// Payloads that were sent to it, read or not.
    private var sent: Set<String> = []

    /// Messages without RETAIN, in order, as the application receives them.
    private(set) var delivered: [String] = []
    /// Payloads with RETAIN, which follow a SUBSCRIBE.
    private(set) var retained: [String] = []
    /// Payloads that the broker has acknowledged.
    private(set) var acknowledged: Set<String> = []
    /// Rules broken by the broker.
    private(set) var violations: [String] = []

    init(name: String, subscribedQoS: QoS, isPersistent: Bool) {
        self.name = name
        self.subscribedQoS = subscribedQoS
        self.isPersistent = isPersistent
    }

    /// True when no exchange is incomplete in either direction.
    var isSettled: Bool { outgoing.isEmpty && owed.isEmpty && unreleased.isEmpty }

    // MARK: Connections

    mutating func connect(_ link: ShardLink, cleanSession: Bool) throws {
        leave(link)
        isPersistent = !cleanSession
        if cleanSession { forget() }
        handle = try link.beginConnect(name, cleanSession: cleanSession)
    }

    /// Disconnects; packets on their way are lost but count as sent.
    mutating func leave(_ link: ShardLink) {
        if let handle {
            for packet in (try? link.take(handle)) ?? [] {
                guard case .publish(let publish) = packet else { continue }
                sent.insert(Self.text(publish.payload))
                if let identifier = publish.packetIdentifier {
                    inFlight[identifier] = Self.text(publish.payload)
                }
            }
        }
        handle = nil
        isOpen = false
        owed.removeAll()
        if !isPersistent { forget() }
    }

    private mutating func forget() {
        outgoing.removeAll()
        inFlight.removeAll()
        unreleased.removeAll()
        owed.removeAll()
        isSessionKept = false
    }

    // MARK: Sending

    mutating func publish(
        _ link: ShardLink, _ topic: String, _ payload: String, _ qos: QoS, retain: Bool
    ) throws {
        guard let handle, isOpen else { return }
        identifierNumber += 1
        while outgoing.contains(where: {
            $0.identifier == PacketIdentifier(number: identifierNumber)
        }) {
            identifierNumber += 1
        }
        let identifier = PacketIdentifier(number: identifierNumber)
        if qos != .atMostOnce {
            outgoing.append(
                Outgoing(
                    identifier: identifier, topic: topic, payload: payload, qos: qos,
                    retain: retain))
        }
        try link.send(handle, .publish(topic, payload, qos: qos, identifier, retain: retain))
    }

    /// Sends up to `count` pending acknowledgements.
    mutating func acknowledge(_ link: ShardLink, count: Int) throws {
        for _ in 0..<min(count, owed.count) {
            guard let handle else { return }
            let packet = owed.removeFirst()
            switch packet {
            case .puback(let identifier), .pubcomp(let identifier): inFlight[identifier] = nil
            default: break
            }
            try link.send(handle, packet)
        }
    }

    // MARK: Receiving

    mutating func receive(_ link: ShardLink) throws {
        guard let handle else { return }
        for packet in try link.take(handle) { try receive(link, handle, packet) }
        if link.closed.contains(handle) { leave(link) }
    }

    private mutating func receive(_ link: ShardLink, _ handle: Handle, _ packet: PacketContent)
        throws
    {
        if !isOpen, case .connack = packet {
        } else if !isOpen {
            violations.append("\(name): \(packet) before CONNACK [MQTT-3.2.0-1]")
        }
        switch packet {
        case .connack(let connack): try open(link, handle, connack)
        case .publish(let publish): receive(publish)
        case .puback(let identifier): finish(identifier, .atLeastOnce)
        case .pubrec(let identifier):
            if let index = outgoing.firstIndex(where: { $0.identifier == identifier }) {
                outgoing[index].isReleased = true
                acknowledged.insert(outgoing[index].payload)
            }
            try link.send(handle, .pubrel(identifier))
        case .pubcomp(let identifier): finish(identifier, .exactlyOnce)
        case .pubrel(let identifier):
            unreleased.remove(identifier)
            owed.append(.pubcomp(identifier))
        default: break
        }
    }

    private mutating func open(_ link: ShardLink, _ handle: Handle, _ connack: Connack) throws {
        guard connack.returnCode == .accepted else {
            violations.append("\(name): refused with \(connack)")
            return
        }
        let sessionPresent = connack.sessionPresent
        isOpen = true
        if isSessionKept, !sessionPresent {
            violations.append("\(name): its session is gone [MQTT-3.2.2-2]")
        }
        if !sessionPresent { forget() }
        isSessionKept = isPersistent
        for one in outgoing {
            try link.send(
                handle,
                one.isReleased
                    ? .pubrel(one.identifier)
                    : .publish(
                        one.topic, one.payload, qos: one.qos, one.identifier, isDuplicate: true,
                        retain: one.retain))
        }
    }

    private mutating func receive(_ publish: PacketContent.Publish) {
        let payload = Self.text(publish.payload)
        defer { sent.insert(payload) }
        var isDuplicate = false
        if case .atLeastOnce(_, let flag) = publish.delivery { isDuplicate = flag }
        if case .exactlyOnce(_, let flag) = publish.delivery { isDuplicate = flag }
        if isDuplicate, !sent.contains(payload) {
            violations.append("\(name): DUP 1 on \(payload), which was never sent")
        }
        if let identifier = publish.packetIdentifier {
            if let other = inFlight[identifier], other != payload {
                violations.append(
                    "\(name): \(identifier) is \(other)'s and comes with \(payload) [MQTT-2.3.1-4]")
            }
            inFlight[identifier] = payload
        }
        switch publish.delivery {
        case .atMostOnce: deliver(publish, payload)
        case .atLeastOnce(let identifier, _):
            deliver(publish, payload)
            owed.append(.puback(identifier))
        case .exactlyOnce(let identifier, _):
            if unreleased.insert(identifier).inserted { deliver(publish, payload) }
            owed.append(.pubrec(identifier))
        }
    }

    private mutating func deliver(_ publish: PacketContent.Publish, _ payload: String) {
        if publish.retain { retained.append(payload) } else { delivered.append(payload) }
    }

    private mutating func finish(_ identifier: PacketIdentifier, _ qos: QoS) {
        guard
            let index = outgoing.firstIndex(where: {
                $0.identifier == identifier && $0.qos == qos
            })
        else { return }
        acknowledged.insert(outgoing[index].payload)
        outgoing.remove(at: index)
    }

    private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}

extension PacketContent.Publish {
    /// `nil` at QoS 0.
    var packetIdentifier: PacketIdentifier? {
        switch delivery {
        case .atMostOnce: nil
        case .atLeastOnce(let identifier, _), .exactlyOnce(let identifier, _): identifier
        }
    }
}
