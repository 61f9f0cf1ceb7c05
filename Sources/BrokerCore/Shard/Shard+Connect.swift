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
        guard case .connect(let connect) = try PacketDecoder.decode(frame, bytes.bytes) else {
            preconditionFailure("a CONNECT decoded as something else")
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
                handle: handle, connect: connect, bytes: bytes, packet: bytes[frame.packet],
                provenUser: certificateUser.map {
                    SessionUser(
                        name: UnsafeRawBufferPointer(start: $0.bytes, count: $0.count),
                        proof: .certificate)
                })
            if let refusal = refusalOfNames(judged) {
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
