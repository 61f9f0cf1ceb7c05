/// The user name that a client comes with, and what proved it.
///
/// Borrows its bytes for one call.
struct SessionUser {
    enum Proof: Hashable {
        /// It is only claimed.
        case none
        case password
        case certificate
    }

    let name: UnsafeRawBufferPointer
    let proof: Proof

    var isProven: Bool { proof != .none }
}

extension SessionUser {
    /// Stands before a name that a certificate proved, which stays proven whether or not the broker
    /// checks passwords. No user name begins with it, since all are UTF-8 [MQTT-3.1.3-11].
    private static let mark: UInt8 = 0xFF

    /// As a session's record keeps it.
    var stored: [UInt8] { proof == .certificate ? [Self.mark] + name : [UInt8](name) }

    /// What a record says. A name without the mark counts as proven where passwords are checked: nobody
    /// comes there with it who cannot prove it.
    init(stored: UnsafeRawBufferPointer, verifiesPasswords: Bool) {
        guard stored.first == Self.mark else {
            name = stored
            proof = verifiesPasswords ? .password : .none
            return
        }
        name = UnsafeRawBufferPointer(rebasing: stored.dropFirst())
        proof = .certificate
    }
}
