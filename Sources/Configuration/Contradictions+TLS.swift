/// Rules over the keys of a listener's `tls` section.
extension ConfigurationDraft {
    /// With any `tls` key set, requires certificate and key: the listener must not become plain
    /// TCP.
    mutating func checkTLS() {
        for index in configuration.listeners.indices where isTLSMeant(index) {
            checkCertificates(index)
            checkClientCertificates(index)
        }
    }

    private func isTLSMeant(_ index: Int) -> Bool {
        let section = "listeners[\(index)].tls"
        return givenKeys.contains { $0 == section || $0.hasPrefix("\(section).") }
    }

    private mutating func checkCertificates(_ index: Int) {
        let section = "listeners[\(index)].tls"
        let (certificate, key) = ("\(section).certificate", "\(section).key")
        guard areUsable(certificate, key) else { return }
        let tls = configuration.listeners[index].tls
        if tls.certificates.isEmpty {
            problems.add(
                "the section has no certificate, and a listener that was meant to be safe does not serve plain TCP",
                cure: "Give the path of a PEM file, or delete \(section).",
                key: certificate, at: originOfTLS(index, certificate))
        }
        if tls.keys.isEmpty {
            problems.add(
                "the section has no key",
                cure: "Give the path of the certificate's private key, or delete \(section).",
                key: key, at: originOfTLS(index, key))
        }
        guard !tls.certificates.isEmpty, !tls.keys.isEmpty,
            tls.certificates.count != tls.keys.count
        else { return }
        problems.add(
            "\(tls.keys.count) keys stand beside \(tls.certificates.count) certificates",
            cure: "Give one key for each certificate, in the same order.",
            key: key, at: originOfTLS(index, key))
    }

    private mutating func checkClientCertificates(_ index: Int) {
        let section = "listeners[\(index)].tls"
        let rule = "\(section).client_certificates"
        let tls = configuration.listeners[index].tls
        guard areUsable(rule) else { return }
        if tls.clientCertificates == .off {
            let pointless = [
                ("client_ca_file", tls.clientCAFile != nil),
                ("crl_file", tls.crlFile != nil),
                ("user_name_from_certificate", tls.userNameFromCertificate),
            ]
            for (name, isSet) in pointless where isSet && areUsable("\(section).\(name)") {
                problems.add(
                    "it has no effect while clients show no certificates",
                    cure: "Set client_certificates to required or optional, or delete the key.",
                    key: "\(section).\(name)", at: originOfTLS(index, "\(section).\(name)"))
            }
        } else if tls.clientCAFile == nil, areUsable("\(section).client_ca_file") {
            problems.add(
                "nobody is named who may issue the certificates of clients",
                cure: "Give the path of a PEM file, or set client_certificates: off.",
                key: "\(section).client_ca_file", at: originOfTLS(index, rule))
        }
    }

    /// The origin of the key, or else of any other key in its section.
    private func originOfTLS(_ index: Int, _ key: String) -> ConfigurationOrigin? {
        let section = "listeners[\(index)].tls"
        let others = Setting.all.map { $0.key(at: index) }.filter { $0.hasPrefix(section) }
        return ([key, section] + others).lazy.compactMap { self.origin($0) }.first
    }
}
