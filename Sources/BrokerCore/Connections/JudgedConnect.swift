import MQTTCodec
import Structures

/// A CONNECT that is being processed; its ranges refer to `bytes`.
struct JudgedConnect {
    let handle: Handle
    let connect: Connect
    let bytes: UnsafeRawBufferPointer
    /// The whole packet.
    let packet: UnsafeRawBufferPointer
    /// The user name that the client's TLS certificate proved, or its token.
    let provenUser: SessionUser?

    /// A CONNECT that was kept while it waited, with the user name that has been proven meanwhile.
    init(_ handle: Handle, _ held: HeldConnect, provenUser: SessionUser? = nil) {
        self.init(
            handle: handle, connect: held.connect, bytes: held.packet, packet: held.packet,
            provenUser: provenUser ?? held.provenUser)
    }

    init(
        handle: Handle, connect: Connect, bytes: UnsafeRawBufferPointer,
        packet: UnsafeRawBufferPointer, provenUser: SessionUser?
    ) {
        self.handle = handle
        self.connect = connect
        self.bytes = bytes
        self.packet = packet
        self.provenUser = provenUser
    }

    /// The user name in the packet.
    var userName: UnsafeRawBufferPointer? { connect.userName.map { bytes[$0] } }
    var claimedUserName: [UInt8]? { userName.map { [UInt8]($0) } }
    var clientIdentifier: UnsafeRawBufferPointer { bytes[connect.clientIdentifier] }
}
