import BrokerAPI
import BrokerCore
import Structures

extension ClientHistories {
    /// Something that happened to a client, once or several times in a row.
    struct Event: BitwiseCopyable {
        let firstMs: Int64
        var lastMs: Int64
        var count: UInt32
        /// The event before; ``noIndex`` without one.
        var older: UInt32
        let reason: CompactBytes
        /// Address, user name, topic and detail, one after the other.
        private var texts = CompactBytes()
        private var addressEnd: UInt16 = 0
        private var userNameEnd: UInt16 = 0
        private var topicEnd: UInt16 = 0
        let kind: UInt8

        /// Bytes of a user name, topic or detail; longer ones are cut.
        private static let mostText = 256

        init(_ happening: Happening, older: UInt32, atMs now: Int64, pool: BytePool) {
            firstMs = now
            lastMs = now
            count = UInt32(clamping: happening.count)
            self.older = older
            reason = Self.withBytes(of: happening.reason) { CompactBytes($0, pool: pool) }
            kind = Self.number(of: happening.kind)
            setTexts(happening, pool: pool)
        }

        var bytes: Int { MemoryLayout<Self>.stride + reason.count + texts.count }
        var kindOfEvent: ClientEvent.Kind { ClientEvent.Kind.allCases[Int(kind)] }

        func hasReason(_ reason: String) -> Bool {
            Self.withBytes(of: reason) { self.reason.equals($0) }
        }

        func destroy(in pool: BytePool) {
            reason.destroy(in: pool)
            texts.destroy(in: pool)
        }

        /// Takes the texts of a repetition in place of its own.
        mutating func setTexts(_ happening: Happening, pool: BytePool) {
            texts.destroy(in: pool)
            let userName = Self.cut(happening.userName)
            let topic = Self.cut(happening.topic)
            let all = happening.address + userName + topic + Self.cut(happening.detail)
            texts = all.withUnsafeBytes { CompactBytes($0, pool: pool) }
            addressEnd = UInt16(clamping: happening.address.count)
            userNameEnd = UInt16(clamping: happening.address.count + userName.count)
            topicEnd = UInt16(clamping: happening.address.count + userName.count + topic.count)
        }

        /// The event for an answer; `address` gives the text of an address in the caller's form.
        func told(_ address: (ArraySlice<UInt8>) -> String) -> ClientEvent {
            let texts = texts.array
            func text(_ range: Range<Int>) -> String? {
                range.isEmpty ? nil : String(decoding: texts[range], as: UTF8.self)
            }
            let (addressEnd, userNameEnd) = (Int(addressEnd), Int(userNameEnd))
            let topicEnd = Int(topicEnd)
            return ClientEvent(
                kind: kindOfEvent, firstMs: firstMs, lastMs: lastMs, count: UInt64(count),
                reason: String(decoding: reason.array, as: UTF8.self),
                address: addressEnd > 0 ? address(texts[..<addressEnd]) : nil,
                userName: text(addressEnd..<userNameEnd), topic: text(userNameEnd..<topicEnd),
                detail: text(topicEnd..<texts.count))
        }

        /// Lends the bytes of a text; the names of reasons need no copy.
        private static func withBytes<Result>(
            of text: String, _ body: (UnsafeRawBufferPointer) -> Result
        ) -> Result {
            var text = text
            return text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
        }

        /// At most ``mostText`` bytes, cut between characters.
        private static func cut(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
            var end = min(bytes.count, mostText)
            while end < bytes.count, end > 0, bytes[end] & 0xC0 == 0x80 { end -= 1 }
            return bytes[..<end]
        }

        static func number(of kind: ClientEvent.Kind) -> UInt8 {
            switch kind {
            case .connected: 0
            case .disconnected: 1
            case .refused: 2
            case .lostMessages: 3
            case .filterRefused: 4
            case .denied: 5
            case .expired: 6
            case .deviceGone: 7
            case .deviceSetAside: 8
            case .flapping: 9
            case .sessionEnded: 10
            }
        }
    }
}
