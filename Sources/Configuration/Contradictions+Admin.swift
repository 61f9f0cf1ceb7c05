/// Rules over the keys of the `admin` section.
extension ConfigurationDraft {
    /// Requires certificate and key when any key of `admin.tls` is set. Plain HTTP beyond loopback
    /// would expose tokens, so it needs `admin.allow_plain`.
    mutating func checkAdminTLS() {
        let section = "admin.tls"
        if givenKeys.contains(where: { $0 == section || $0.hasPrefix("\(section).") }) {
            checkAdminCertificate()
        } else {
            checkAdminPlain()
        }
    }

    private mutating func checkAdminCertificate() {
        let (certificate, key) = ("admin.tls.certificate", "admin.tls.key")
        guard areUsable(certificate, key) else { return }
        let tls = configuration.admin.tls
        if tls.certificate == nil {
            problems.add(
                "the section has no certificate, and an API that was meant to be safe does not speak plain HTTP",
                cure: "Give the path of a PEM file, or delete admin.tls.",
                key: certificate, at: originOfAdminTLS(certificate))
        }
        if tls.key == nil {
            problems.add(
                "the section has no key",
                cure: "Give the path of the certificate's private key, or delete admin.tls.",
                key: key, at: originOfAdminTLS(key))
        }
    }

    private mutating func checkAdminPlain() {
        guard areUsable("admin.address", "admin.allow_plain"), !configuration.admin.isLoopback,
            !configuration.admin.allowPlain
        else { return }
        problems.add(
            "the HTTP API would be spoken without TLS on an address that other machines reach, and its tokens with it",
            cure:
                "Give admin.tls.certificate and admin.tls.key, listen on 127.0.0.1, or set admin.allow_plain: true where the way is safe.",
            key: "admin.address", at: origin("admin.address", "admin.allow_plain"))
    }

    /// The origin of the key, or else of any other key in its section.
    private func originOfAdminTLS(_ key: String) -> ConfigurationOrigin? {
        let others = Setting.all.map { $0.key(at: 0) }.filter { $0.hasPrefix("admin.tls") }
        return ([key, "admin.tls"] + others).lazy.compactMap { self.origin($0) }.first
    }
}
