import BrokerCore
import Structures

/// Names of notifications. They are the same in every run of the broker, so that a wake that a crash
/// repeats replaces the first one on the phone.
enum WakeNames {
    private static let first = KeyedHash(seed: 0x4845_524D_4553_0001)
    private static let second = KeyedHash(seed: 0x4845_524D_4553_0002)

    /// A digest of a topic.
    static func collapse(_ topic: UnsafeRawBufferPointer) -> UInt64 { first(topic) }

    /// The name of a notification that a later one of the same digest replaces: 16 digits.
    static func collapseID(_ digest: UInt64) -> String {
        let digits = String(digest, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// The name of the notification about the messages of a session below a position: a UUID of
    /// version 8 (RFC 9562, section 5.8). Trials have names of their own, by a time, and so have cleared badges.
    static func notification(
        _ token: [UInt8], session: UInt64, position: UInt64, isOfMessages: Bool, at timeMs: Int64
    ) -> (high: UInt64, low: UInt64) {
        let salt = session &* 0x9E37_79B9_7F4A_7C15 ^ position ^ UInt64(bitPattern: timeMs) << 20
        let seed = isOfMessages ? salt : ~salt
        return token.withUnsafeBytes { token in
            let (high, low) = (first(token, salt: seed), second(token, salt: seed))
            return (high & ~0xF000 | 0x8000, low & ~(3 << 62) | 1 << 63)
        }
    }
}
