/// The issuer and the subject of a certificate, read from its DER encoding (RFC 5280, section 4.1).
/// Used in messages about the issuer; no trust depends on it.
struct CertificateNames: Equatable {
    /// The DER encoding of issuer and subject.
    private let issuer: [UInt8]
    private let subject: [UInt8]

    /// True when issuer and subject are the same, as in a self-signed certificate.
    var isSelfIssued: Bool { issuer == subject }

    /// The issuer's common name, or else its organisation; `nil` without either.
    var issuerName: [UInt8]? {
        // 2.5.4.3 and 2.5.4.10 (RFC 5280, appendix A).
        Self.value(of: [0x55, 0x04, 0x03], in: issuer)
            ?? Self.value(of: [0x55, 0x04, 0x0A], in: issuer)
    }

    /// `nil` when the bytes are no certificate.
    init?(der: [UInt8]) {
        var outer = DERReader(der[...])
        guard let certificate = outer.next(), certificate.tag == DERReader.sequence else {
            return nil
        }
        var certificateReader = DERReader(certificate.content)
        guard let signed = certificateReader.next(), signed.tag == DERReader.sequence else {
            return nil
        }
        var reader = DERReader(signed.content)
        // The oldest certificates have no version.
        guard var field = reader.next() else { return nil }
        if field.tag == DERReader.version {
            guard let serial = reader.next() else { return nil }
            field = serial
        }
        guard field.tag == DERReader.integer, reader.next() != nil, let issuer = reader.next(),
            issuer.tag == DERReader.sequence, reader.next() != nil, let subject = reader.next(),
            subject.tag == DERReader.sequence
        else { return nil }
        self.issuer = Array(issuer.content)
        self.subject = Array(subject.content)
    }

    /// The text of the first attribute of that type.
    private static func value(of type: [UInt8], in name: [UInt8]) -> [UInt8]? {
        var sets = DERReader(name[...])
        while let set = sets.next() {
            var attributes = DERReader(set.content)
            while let attribute = attributes.next() {
                var parts = DERReader(attribute.content)
                guard let identifier = parts.next(), identifier.content.elementsEqual(type),
                    let text = parts.next()
                else { continue }
                return Array(text.content)
            }
        }
        return nil
    }
}

/// Walks over the values of one level of DER (X.690): tag, length, content.
private struct DERReader {
    static let integer: UInt8 = 0x02
    static let sequence: UInt8 = 0x30
    static let version: UInt8 = 0xA0

    private var bytes: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
    }

    /// The next value. `nil` at the end, and for bytes that are not DER with one-byte tags and
    /// lengths below 16 MiB.
    mutating func next() -> (tag: UInt8, content: ArraySlice<UInt8>)? {
        guard let tag = bytes.popFirst(), tag & 0x1F != 0x1F, let first = bytes.popFirst() else {
            return nil
        }
        var length = Int(first)
        if first & 0x80 != 0 {
            let count = Int(first & 0x7F)
            guard (1...3).contains(count), bytes.count >= count else { return nil }
            length = bytes.prefix(count).reduce(0) { $0 << 8 | Int($1) }
            bytes = bytes.dropFirst(count)
        }
        guard length <= bytes.count else { return nil }
        let content = bytes.prefix(length)
        bytes = bytes.dropFirst(length)
        return (tag, content)
    }
}
