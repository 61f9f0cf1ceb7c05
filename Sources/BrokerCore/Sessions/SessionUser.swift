/// A client's user name, and what proved it. Borrows its bytes for one call.
package struct SessionUser {
    package enum Proof: UInt8 {
        /// Only claimed.
        case none
        /// A password, or a token in its place.
        case password
        case certificate
    }

    package let name: UnsafeRawBufferPointer
    package let proof: Proof

    package var isProven: Bool { proof != .none }
}

extension SessionUser {
    /// Prefix of a name that a certificate proved; it stays proven with and without a password
    /// file. No user name begins with it, since all are UTF-8 [MQTT-3.1.3-11].
    private static let mark: UInt8 = 0xFF

    /// The form in a session's record.
    package var stored: [UInt8] { proof == .certificate ? [Self.mark] + name : [UInt8](name) }

    /// Reads a record. A name without the mark is proven if passwords or tokens are checked, since nobody
    /// could have connected with it otherwise.
    package init(stored: UnsafeRawBufferPointer, verifiesPasswords: Bool) {
        guard stored.first == Self.mark else {
            name = stored
            proof = verifiesPasswords ? .password : .none
            return
        }
        name = UnsafeRawBufferPointer(rebasing: stored.dropFirst())
        proof = .certificate
    }
}
