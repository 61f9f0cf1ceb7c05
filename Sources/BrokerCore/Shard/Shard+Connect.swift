import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// CONNECT arrives: what the packet itself, names, bans and a drain refuse is refused here.
extension Shard {
    package mutating func receiveConnect(
        _ handle: Handle, _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer,
        _ token: UnsafeRawBufferPointer
    ) throws(MalformedPacket) {
        guard connections[handle].machine.isAwaitingConnect else {
            end(handle, .protocolViolation(.secondConnect))
            return
        }
        let decoded: DecodedConnect
        do throws(ConnectFault) {
            decoded = try DecodedConnect(frame, bytes.bytes)
        } catch {
            switch error {
            case .malformed(let error): throw error
            case .fault(let fault):
                connections[handle].outlet.speak5()
                // Not what an earlier client of this index has said.
                clients5.add(handle, Clients5.Client())
                let reason = CloseReason.protocolViolation(.fault(fault))
                // CONNACK says which rule it is [MQTT-3.1.4-1].
                refuse5(handle, reason)
                context.counters.refused(listener: connections[handle].listener)
                context.counters.otherPacketsSent += 1
                end(handle, reason)
                return
            }
        }
        let connect = decoded.connect
        if let terms = decoded.terms {
            connections[handle].outlet.speak5()
            clients5.add(handle, Clients5.Client(terms, wasNamed: connect.clientID.isEmpty))
        }
        switch connections[handle].machine.receive(
            connect, identifierCount: Int(connect.clientID.count))
        {
        case .ignore:
            return
        case .close(let violation):
            end(handle, .protocolViolation(violation))
        case .refuse(let code):
            refuseConnect(
                handle, code, .identifierRejected, [UInt8](bytes[connect.clientID]),
                userName: connect.userName.map { [UInt8](bytes[$0]) })
        case .authenticate(let certificateUser):
            let judged = JudgedConnect(
                handle: handle, decoded, bytes: bytes, packet: bytes[frame.packet],
                provenUser: certificateUser.map {
                    SessionUser(
                        name: UnsafeRawBufferPointer(start: $0.bytes, count: $0.count),
                        proof: .certificate)
                })
            if decoded.terms?.hasAuthenticationMethod == true {
                // The broker has no method of enhanced authentication [MQTT-4.12.0-1].
                refuseConnect(judged, .notAuthorized, .badAuthenticationMethod)
            } else if let terms = decoded.terms,
                terms.willProperties.range.count > Message.mostProperties
            {
                refuseConnect(judged, .serverUnavailable, .noRoom(.maxConnectPacket))
            } else if let refusal = refusalOfNames(judged) {
                refuseConnect(judged, refusal.code, refusal.reason)
            } else if let ban = ban(of: judged) {
                // Before its password is checked, which would cost more than the refusal.
                refuse(judged, by: ban)
            } else if drain.isActive {
                refuseConnect(judged, .serverUnavailable, .draining)
            } else {
                authenticate(judged, token)
            }
            certificateUser?.release(in: pool)
        }
    }
}
