/// A digest of 64 bits that tells a redelivery from another message which got the same packet
/// identifier: FNV-1a over topic and payload. Nothing is protected by it.
enum ContentDigest {
    static func of(topic: [UInt8], payload: [UInt8]) -> UInt64 {
        var value: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in topic { value = (value ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
        // No topic name contains this byte, so that the boundary is part of the digest.
        value = (value ^ 0xFF) &* 0x0000_0100_0000_01B3
        for byte in payload { value = (value ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
        return value
    }
}
