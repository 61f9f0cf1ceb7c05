/// What a file in PEM holds, by the lines that begin its parts.
package enum PEMKind {
    /// True for a certificate in the place of a key, as when the two files are swapped.
    package static func isCertificateWithoutKey(_ bytes: [UInt8]) -> Bool {
        holds("-----BEGIN CERTIFICATE-----", in: bytes)
            && !holds("PRIVATE KEY-----", in: bytes)
    }

    package static let swappedCure =
        "Are the certificate and the key swapped? Name the file of the private key here."

    private static func holds(_ words: StaticString, in bytes: [UInt8]) -> Bool {
        let words = UnsafeBufferPointer(start: words.utf8Start, count: words.utf8CodeUnitCount)
        guard bytes.count >= words.count else { return false }
        return (0...bytes.count - words.count).contains { bytes[$0...].starts(with: words) }
    }
}
