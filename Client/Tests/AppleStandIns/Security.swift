@_exported import Foundation

public typealias CFString = NSString
public typealias CFData = NSData
public typealias CFArray = NSArray
public typealias CFDictionary = NSDictionary
public typealias OSStatus = Int32

public final class CFAllocator {}
public final class CFError {}
public final class SecTrust {}
public final class SecCertificate {}
public final class SecKey {}
public final class SecIdentity {}

public protocol OS_sec_protocol_options: AnyObject {}
public protocol OS_sec_protocol_metadata: AnyObject {}
public protocol OS_sec_trust: AnyObject {}
public protocol OS_sec_identity: AnyObject {}
public typealias sec_protocol_options_t = any OS_sec_protocol_options
public typealias sec_protocol_metadata_t = any OS_sec_protocol_metadata
public typealias sec_trust_t = any OS_sec_trust
public typealias sec_identity_t = any OS_sec_identity
public typealias sec_protocol_verify_complete_t = (Bool) -> Void
public typealias sec_protocol_verify_t = (
    sec_protocol_metadata_t, sec_trust_t, @escaping sec_protocol_verify_complete_t
) -> Void

public enum tls_protocol_version_t: UInt16 {
    case TLSv12 = 0x0303
    case TLSv13 = 0x0304
}

public func sec_protocol_options_set_min_tls_protocol_version(
    _ options: sec_protocol_options_t, _ version: tls_protocol_version_t
) {}

public func sec_protocol_options_set_verify_block(
    _ options: sec_protocol_options_t, _ block: @escaping sec_protocol_verify_t,
    _ queue: DispatchQueue
) {}

public func sec_identity_create_with_certificates(
    _ identity: SecIdentity, _ certificates: CFArray
) -> sec_identity_t? { nil }

public func sec_protocol_options_set_local_identity(
    _ options: sec_protocol_options_t, _ identity: sec_identity_t
) {}

public func SecPKCS12Import(
    _ pkcs12: CFData, _ options: CFDictionary, _ items: UnsafeMutablePointer<CFArray?>
) -> OSStatus { 0 }

public func sec_trust_copy_ref(_ trust: sec_trust_t) -> Unmanaged<SecTrust> {
    fatalError("a declaration only")
}

@discardableResult
public func SecTrustSetAnchorCertificates(_ trust: SecTrust, _ anchors: CFArray?) -> OSStatus { 0 }

@discardableResult
public func SecTrustSetAnchorCertificatesOnly(_ trust: SecTrust, _ only: Bool) -> OSStatus { 0 }

public func SecTrustEvaluateWithError(
    _ trust: SecTrust, _ error: UnsafeMutablePointer<CFError?>?
) -> Bool { false }

public func SecTrustCopyCertificateChain(_ trust: SecTrust) -> CFArray? { nil }

public func SecCertificateCreateWithData(
    _ allocator: CFAllocator?, _ data: CFData
) -> SecCertificate? { nil }

public func SecCertificateCopyKey(_ certificate: SecCertificate) -> SecKey? { nil }

public func SecKeyCopyAttributes(_ key: SecKey) -> CFDictionary? { nil }

public func SecKeyCopyExternalRepresentation(
    _ key: SecKey, _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> CFData? { nil }

public var kSecAttrKeyType: CFString { "" }
public var kSecAttrKeySizeInBits: CFString { "" }
public var kSecAttrKeyTypeRSA: CFString { "" }
public var kSecAttrKeyTypeECSECPrimeRandom: CFString { "" }
public var errSecSuccess: OSStatus { 0 }
public var kSecImportExportPassphrase: CFString { "" }
public var kSecImportItemIdentity: CFString { "" }
public var kSecImportItemCertChain: CFString { "" }
