import BrokerAPI
import Store

/// The form of an identifier with its owner: a byte 1 and eight bytes of the owner in front of the
/// identifier, whose own first byte is at least 0x21. Without an owner it is the identifier alone,
/// as it was before owners were kept.
extension FactBytes {
    mutating func putOwned(_ name: UnsafeRawBufferPointer, _ owner: OwnerID) {
        guard owner != .unknown else {
            putText(name)
            return
        }
        var bytes: [UInt8] = [1]
        withUnsafeBytes(of: owner.rawValue.bigEndian) { bytes.append(contentsOf: $0) }
        bytes.append(contentsOf: name)
        putText(bytes)
    }

    mutating func putOwned(_ name: [UInt8], _ owner: OwnerID) {
        name.withUnsafeBytes { putOwned($0, owner) }
    }
}

extension FactReader {
    mutating func ownedName() throws(DamagedFact) -> OwnedName {
        let text = try name()
        guard text.first == 1 else { return OwnedName(text, of: .unknown) }
        guard text.count > 9 else { throw DamagedFact() }
        let owner = text[1..<9].reduce(0) { $0 << 8 | UInt64($1) }
        return OwnedName([UInt8](text[9...]), of: OwnerID(rawValue: owner))
    }
}
