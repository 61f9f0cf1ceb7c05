#if !canImport(Network)
    import NIOCore
    import NIOSSL

    /// Compares a host with the names of a certificate (RFC 9525, section 6), those in its subject
    /// alternative names alone.
    ///
    /// NIOSSL also accepts the address of the connection's other end, which behind a proxy is not
    /// the broker's.
    enum CertificateNames {
        enum Name: Equatable {
            case dns([UInt8])
            /// 4 bytes, or 16.
            case address([UInt8])
        }

        static func of(_ certificate: NIOSSLCertificate) -> [Name] {
            certificate._subjectAlternativeNames().compactMap { name in
                switch name.nameType {
                case .dnsName: .dns(Array(name.contents))
                case .ipAddress: .address(Array(name.contents))
                default: nil
                }
            }
        }

        /// An IP address is found among the addresses only, a host name among the names of DNS only.
        static func match(_ names: [Name], host: String) -> Bool {
            if let address = try? SocketAddress(ipAddress: host, port: 0) {
                return names.contains { name in
                    guard case .address(let bytes) = name else { return false }
                    return
                        (try? SocketAddress(
                            packedIPAddress: ByteBuffer(bytes: bytes), port: 0)) == address
                }
            }
            let host = comparable(Array(host.utf8))
            return names.contains { name in
                guard case .dns(let pattern) = name else { return false }
                return matches(host, comparable(pattern))
            }
        }

        private static func matches(_ host: [UInt8], _ pattern: [UInt8]) -> Bool {
            guard !host.isEmpty, !host.contains(wildcard) else { return false }
            if host == pattern { return true }
            // The wildcard is the whole label, the first one, and stands for exactly one.
            guard pattern.starts(with: [wildcard, dot]), let end = host.firstIndex(of: dot),
                end > 0, end + 1 < host.count
            else { return false }
            return host[end...] == pattern[1...]
        }

        /// In lower case, and without the dot of the root.
        private static func comparable(_ name: [UInt8]) -> [UInt8] {
            (name.last == dot ? name.dropLast() : name[...]).map { byte in
                UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte | 0x20 : byte
            }
        }

        private static let dot = UInt8(ascii: ".")
        private static let wildcard = UInt8(ascii: "*")
    }
#endif
