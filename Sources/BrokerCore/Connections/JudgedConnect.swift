import MQTTCodec
import Structures

/// A CONNECT that is being processed; its ranges refer to `bytes`.
struct JudgedConnect {
    let handle: Handle
    let connect: Connect
    let bytes: UnsafeRawBufferPointer
    /// The whole packet.
    let packet: UnsafeRawBufferPointer
    /// The user name that the client's TLS certificate proved.
    let certificateUser: UnsafeRawBufferPointer?

    /// A CONNECT that was kept while it waited.
    init(_ handle: Handle, _ held: HeldConnect) {
        self.init(
            handle: handle, connect: held.connect, bytes: held.packet, packet: held.packet,
            certificateUser: held.certificateUser)
    }

    init(
        handle: Handle, connect: Connect, bytes: UnsafeRawBufferPointer,
        packet: UnsafeRawBufferPointer, certificateUser: UnsafeRawBufferPointer?
    ) {
        self.handle = handle
        self.connect = connect
        self.bytes = bytes
        self.packet = packet
        self.certificateUser = certificateUser
    }

    /// The user name in the packet.
    var userName: UnsafeRawBufferPointer? { connect.userName.map { bytes[$0] } }
    var claimedUserName: [UInt8]? { userName.map { [UInt8]($0) } }
    var clientIdentifier: UnsafeRawBufferPointer { bytes[connect.clientIdentifier] }
}
