import Addresses

/// A way by which strangers on the network could do what only the operator's clients should.
package struct OpenDoor: Sendable, Equatable, CustomStringConvertible {
    /// The key that opens it, such as `listeners[0]`.
    package var key: String
    package var text: String
    /// How to close it.
    package var cure: String

    package var description: String { "\(key): \(text). \(cure)" }
}

extension HermesConfiguration {
    /// What is open to other machines, for a warning at a start and in `hermesctl config check`. It
    /// is allowed, since the network itself may be closed.
    package var openDoors: [OpenDoor] {
        var doors: [OpenDoor] = []
        for (number, listener) in listeners.enumerated() where !listener.isLoopback {
            doors += openDoors(of: listener, key: "listeners[\(number)]")
        }
        let isReached = listeners.contains { !$0.isLoopback && !allowsAnonymous(on: $0) }
        if isReached, aclFile == nil {
            doors.append(
                OpenDoor(
                    key: "acl_file",
                    text: "there are no access rules, so each user may publish to every topic and "
                        + "read all of them",
                    cure: "Give an ACL file, as docs/security.md describes."))
        }
        if !admin.isLoopback, !admin.tls.isOn {
            doors.append(
                OpenDoor(
                    key: "admin.allow_plain",
                    text: "the HTTP API speaks plain HTTP on \(admin.address), so its tokens cross "
                        + "the network unencrypted",
                    cure: "Give admin.tls.certificate and admin.tls.key, or listen on 127.0.0.1."))
        }
        return doors
    }

    private func openDoors(of listener: Listener, key: String) -> [OpenDoor] {
        var doors: [OpenDoor] = []
        // A client that must show a certificate is no stranger.
        if allowsAnonymous(on: listener), listener.tls.clientCertificates != .required {
            doors.append(
                OpenDoor(
                    key: key,
                    text: "\(listener.address) lets in everybody without a user name"
                        + (aclFile == nil
                            ? ", to publish to every topic and read all of them" : ""),
                    cure: "Set allow_anonymous: false and give a password_file, or listen on "
                        + "127.0.0.1."))
        }
        // Behind a proxy, TLS may end there.
        if !listener.tls.isOn, listener.proxyFrom.isEmpty {
            doors.append(
                OpenDoor(
                    key: key,
                    text: "\(listener.address) speaks plain TCP, so messages"
                        + (checksLogins ? " and passwords" : "")
                        + " cross the network unencrypted",
                    cure: "Give it tls.certificate and tls.key."))
        }
        return doors
    }
}
