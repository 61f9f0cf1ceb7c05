#if !canImport(Network)
    import Testing

    @testable import HermesClientNIO

    @Suite("Names of a certificate")
    struct CertificateNamesTests {
        private func match(_ host: String, dns names: String...) -> Bool {
            CertificateNames.match(names.map { .dns(Array($0.utf8)) }, host: host)
        }

        @Test("a host name is one of DNS, in any case; a wildcard is the first label, and for one")
        func hostNames() {
            #expect(match("mqtt.example.com", dns: "other.example", "MQTT.Example.com"))
            #expect(match("mqtt.example.com.", dns: "mqtt.example.com"))
            #expect(match("mqtt.example.com", dns: "*.example.com"))
            #expect(match("localhost", dns: "localhost"))
            for (host, name) in [
                ("mqtt.example.com", "example.com"), ("example.com", "mqtt.example.com"),
                ("a.b.example.com", "*.example.com"), ("example.com", "*.example.com"),
                ("mqtt.example.com", "m*.example.com"), ("mqtt.example.com", "mqtt.*.com"),
                ("mqtt.example.com", "*"), ("localhost", "*"), ("mqtt.example.com", ""),
                (".example.com", "*.example.com"), ("*.example.com", "*.example.com"),
                ("mqtt.example.com", "mqtt.example.com\0.evil.example"), ("", ""),
            ] {
                #expect(!match(host, dns: name), "\(host), \(name)")
            }
        }

        @Test("an IP address is one of the addresses, and no name; a host name is no address")
        func addresses() {
            let four = CertificateNames.Name.address([10, 0, 0, 5])
            let six = CertificateNames.Name.address(
                [0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
            #expect(CertificateNames.match([six, four], host: "10.0.0.5"))
            #expect(CertificateNames.match([four, six], host: "2001:db8:0::1"))
            #expect(!CertificateNames.match([four, six], host: "10.0.0.6"))
            #expect(!CertificateNames.match([four, six], host: "localhost"))
            #expect(!CertificateNames.match([.address([]), .address([10])], host: "10.0.0.5"))
            #expect(!match("10.0.0.5", dns: "10.0.0.5", "*.0.0.5"))
        }
    }
#endif
