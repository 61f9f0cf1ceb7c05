import MQTTCodec
import Structures

/// A CONNECT that is being processed; its ranges refer to `bytes`.
package struct JudgedConnect {
    package let handle: Handle
    package let connect: Connect
    /// What a CONNECT of MQTT 5.0 says besides; `nil` for one of an earlier version.
    package let terms: ClientTerms?
    package let bytes: UnsafeRawBufferPointer
    /// The whole packet.
    package let packet: UnsafeRawBufferPointer
    /// The user name that the client's TLS certificate proved, or its token.
    package let provenUser: SessionUser?

    /// A CONNECT that was kept while it waited, with the user name that has been proven meanwhile.
    package init(_ handle: Handle, _ held: HeldConnect, provenUser: SessionUser? = nil) {
        let decoded = held.connect
        self.init(
            handle: handle, decoded, bytes: held.packet, packet: held.packet,
            provenUser: provenUser ?? held.provenUser)
    }

    package init(
        handle: Handle, _ decoded: DecodedConnect, bytes: UnsafeRawBufferPointer,
        packet: UnsafeRawBufferPointer, provenUser: SessionUser?
    ) {
        self.handle = handle
        connect = decoded.connect
        terms = decoded.terms
        self.bytes = bytes
        self.packet = packet
        self.provenUser = provenUser
    }

    /// True if a new session is to outlive its connection.
    package var isPersistent: Bool {
        terms.map { $0.sessionExpiry > 0 } ?? !connect.cleanSession
    }

    /// The user name in the packet.
    package var userName: UnsafeRawBufferPointer? { connect.userName.map { bytes[$0] } }
    package var claimedUserName: [UInt8]? { userName.map { [UInt8]($0) } }
    package var clientID: UnsafeRawBufferPointer { bytes[connect.clientID] }
}
