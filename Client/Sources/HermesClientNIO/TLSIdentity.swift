#if canImport(Network)
    import Foundation
    import Security
#endif

/// A certificate of the client's own, with its key.
package enum TLSIdentity: Sendable {
    /// A PKCS #12 file, with the password that opens it.
    case pkcs12([UInt8], password: String)
    #if canImport(Network)
        /// One of the keychain, with the certificates between it and its root.
        case keychain(KeychainIdentity)
    #else
        /// The certificate in PEM, those between it and its root behind it, and its key in PEM.
        case pem(certificates: [UInt8], privateKey: [UInt8])
    #endif
}

#if canImport(Network)
    /// Security's objects are immutable, and its functions may be called on any thread.
    package struct KeychainIdentity: @unchecked Sendable {
        package let identity: SecIdentity
        package let intermediates: [SecCertificate]

        package init(_ identity: SecIdentity, intermediates: [SecCertificate]) {
            self.identity = identity
            self.intermediates = intermediates
        }

        init(_ identity: TLSIdentity) throws(EndpointError) {
            switch identity {
            case .keychain(let identity): self = identity
            case .pkcs12(let file, let password): try self.init(pkcs12: file, password)
            }
        }

        private init(pkcs12 file: [UInt8], _ password: String) throws(EndpointError) {
            var items: CFArray?
            let status = SecPKCS12Import(
                Data(file) as CFData, [kSecImportExportPassphrase: password] as CFDictionary, &items
            )
            guard status == errSecSuccess, let entry = (items as? [[String: Any]])?.first,
                let found = entry[kSecImportItemIdentity as String],
                let identity = ([found] as? [SecIdentity])?.first
            else {
                throw EndpointError(
                    reason: "the client's certificate is no PKCS #12, or its password is another "
                        + "one: OSStatus \(status)")
            }
            // The first one is the identity's own.
            let chain = entry[kSecImportItemCertChain as String] as? [SecCertificate] ?? []
            self.init(identity, intermediates: Array(chain.dropFirst()))
        }
    }
#endif
