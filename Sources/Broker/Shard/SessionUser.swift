/// The user name that a client comes with, and whether a password or a certificate proved it.
///
/// Borrows its bytes for one call.
struct SessionUser {
    let name: UnsafeRawBufferPointer
    let isProven: Bool
}

extension SessionUser {
    /// Stands before a name that a certificate proved to a broker that checks no passwords, where other
    /// names prove nothing. No user name begins with it, since all are UTF-8 [MQTT-3.1.3-11].
    private static let mark: UInt8 = 0xFF

    /// As a session's record keeps it.
    func stored(verifiesPasswords: Bool) -> [UInt8] {
        isProven && !verifiesPasswords ? [Self.mark] + name : [UInt8](name)
    }

    /// What a record says. A name without the mark counts as proven where passwords are checked: nobody
    /// comes there with it who cannot prove it.
    init(stored: UnsafeRawBufferPointer, verifiesPasswords: Bool) {
        let isMarked = stored.first == Self.mark
        name = isMarked ? UnsafeRawBufferPointer(rebasing: stored.dropFirst()) : stored
        isProven = isMarked || verifiesPasswords
    }
}
