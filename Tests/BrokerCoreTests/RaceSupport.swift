import BrokerCore
import BrokerFeatures
import BrokerTesting
import HermesTesting
import MQTTCodec
import MQTTCore
import Structures

/// Steps shared by tests of races and limits.
extension ShardLink {
    /// Completes every pending commit and those that follow from it.
    func commitAll() {
        store.completeAll()
        turn()
    }

    /// Sends a CONNECT and leaves its commit pending.
    func beginConnect(
        _ identifier: String, cleanSession: Bool = false,
        _ change: (inout PacketContent.Connect) -> Void = { _ in }
    ) throws -> Handle {
        let handle = open()
        var connect = PacketContent.Connect(clientID: identifier)
        connect.cleanSession = cleanSession
        change(&connect)
        try send(handle, .connect(connect))
        return handle
    }

    /// A connected persistent client with one subscription; its CONNACK and SUBACK are consumed.
    func subscriber(
        _ identifier: String, to filter: String, _ qos: QoS, cleanSession: Bool = false
    ) throws -> Handle {
        let handle = try connect(identifier, cleanSession: cleanSession)
        try send(handle, .subscribe(filter, qos))
        commitAll()
        _ = try take(handle)
        return handle
    }

    /// Publishes payloads on one topic at QoS 1, with identifiers from 1 on.
    func publish(_ payloads: [String], to topic: String, qos: QoS = .atLeastOnce, from: Handle)
        throws
    {
        for (number, payload) in payloads.enumerated() {
            try send(from, .publish(topic, payload, qos: qos, PacketIdentifier(number: number + 1)))
        }
    }

    /// Payloads received since the last call, not acknowledged.
    func takePayloads(_ handle: Handle) throws -> [String] { try take(handle).payloads }

    /// Receives and acknowledges until nothing more comes, at most `rounds` times; the payloads.
    func takeAll(_ handle: Handle, rounds: Int = 200) throws -> [String] {
        var payloads: [String] = []
        for _ in 0..<rounds {
            let packets = try take(handle)
            if packets.isEmpty { return payloads }
            payloads.append(contentsOf: packets.payloads)
            for packet in packets {
                switch packet {
                case .publish(let publish):
                    switch publish.delivery {
                    case .atMostOnce: continue
                    case .atLeastOnce(let identifier, _): try send(handle, .puback(identifier))
                    case .exactlyOnce(let identifier, _): try send(handle, .pubrec(identifier))
                    }
                case .pubrel(let identifier): try send(handle, .pubcomp(identifier))
                default: continue
                }
            }
            commitAll()
        }
        return payloads
    }
}

extension [PacketContent] {
    /// Payloads of the PUBLISH packets.
    var payloads: [String] {
        compactMap { packet in
            guard case .publish(let publish) = packet else { return nil }
            return String(decoding: publish.payload, as: UTF8.self)
        }
    }
}

extension PacketIdentifier {
    /// Identifiers in the order of assignment: 1 to 65,535, then 1 again.
    init(number: Int) {
        guard let identifier = PacketIdentifier(UInt16((number - 1) % 65_535 + 1)) else {
            preconditionFailure("no packet identifier is 0")
        }
        self = identifier
    }
}
