import HermesClientNIO

#if canImport(Network)
    import Security
#endif

extension HermesClient {
    /// The client's own certificate with its key, for a broker that asks for one.
    ///
    /// It is read when the client is made: a certificate that is renewed needs a new client, with the
    /// same storage, after ``HermesClient/stop()``.
    public struct ClientIdentity: Sendable {
        let identity: TLSIdentity

        /// A PKCS #12 file (`.p12`), with its password.
        ///
        /// On macOS, Security puts what it reads into the user's keychain.
        public static func pkcs12(_ file: [UInt8], password: String) -> ClientIdentity {
            ClientIdentity(identity: .pkcs12(file, password: password))
        }

        #if canImport(Network)
            /// An identity of the keychain, such as one that a device management has installed for
            /// the app, or whose key never leaves the Secure Enclave.
            ///
            /// - Parameters:
            ///   - identity: certificate and key.
            ///   - intermediates: the certificates between it and the root that the broker knows.
            /// - Returns: The identity, for ``Server``.
            public static func keychain(
                _ identity: SecIdentity, intermediates: [SecCertificate] = []
            ) -> ClientIdentity {
                ClientIdentity(
                    identity: .keychain(KeychainIdentity(identity, intermediates: intermediates)))
            }
        #else
            /// Certificate and key in PEM, as files of programs on servers are.
            ///
            /// - Parameters:
            ///   - certificates: the client's own first, then those between it and the root that the
            ///     broker knows.
            ///   - privateKey: not encrypted.
            /// - Returns: The identity, for ``Server``.
            public static func pem(
                certificates: [UInt8], privateKey: [UInt8]
            ) -> ClientIdentity {
                ClientIdentity(
                    identity: .pem(certificates: certificates, privateKey: privateKey))
            }
        #endif
    }
}
