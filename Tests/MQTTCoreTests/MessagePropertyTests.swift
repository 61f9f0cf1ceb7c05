import MQTTCodec
import Structures
import Testing

@testable import MQTTCore

@Suite("Properties of a message")
struct MessagePropertyTests {
    private let pool = BytePool()

    /// Properties as encoded: a content type and two user properties.
    private let encoded: [UInt8] =
        [3, 0, 4] + Array("text".utf8) + [38, 0, 1, 0x6B, 0, 1, 0x76, 38, 0, 1, 0x6B, 0, 1, 0x77]

    private func message(
        _ properties: [UInt8], payload: String = "payload", messageID: String = ""
    ) -> Message {
        Array("a/b".utf8).withUnsafeBytes { topic in
            Array(payload.utf8).withUnsafeBytes { payload in
                Array(messageID.utf8).withUnsafeBytes { messageID in
                    properties.withUnsafeBytes {
                        Message(
                            topic: topic, payload: payload, qos: .atLeastOnce, retain: false,
                            messageID: messageID, forwarded: ForwardedProperties(whole: $0),
                            forwardedSource: $0, pool: pool)
                    }
                }
            }
        }
    }

    @Test(
        "they stand behind the payload, and the identifier behind them", arguments: ["", "order-7"])
    func places(messageID: String) {
        let message = message(encoded, messageID: messageID)
        #expect(message.hasProperties)
        #expect(Array(message.properties) == encoded)
        #expect(String(decoding: message.payload, as: UTF8.self) == "payload")
        #expect(String(decoding: message.messageID, as: UTF8.self) == messageID)
        #expect(String(decoding: message.topic, as: UTF8.self) == "a/b")
        #expect(message.storedPayload.count == 7 + encoded.count + 2)
        #expect(message.contentBytes == 3 + message.storedPayload.count)
        message.release(in: pool)
        #expect(pool.bytesInUse == 0)
    }

    @Test("what a store keeps in place of the payload comes apart again")
    func split() throws {
        let message = message(encoded)
        let parts = try #require(Message.split(message.storedPayload))
        #expect(String(decoding: parts.payload, as: UTF8.self) == "payload")
        #expect(Array(parts.properties) == encoded)
        message.release(in: pool)
    }

    @Test("bytes that hold no properties do not come apart")
    func damaged() {
        for bytes: [UInt8] in [[], [0], [0, 0], [1, 0, 0], [1, 0, 2], [1, 2, 0xFF, 0xFF]] {
            bytes.withUnsafeBytes { #expect(Message.split($0) == nil) }
        }
    }

    @Test("a message without any is stored as it was before")
    func none() {
        let message = message([])
        #expect(!message.hasProperties)
        #expect(message.properties.isEmpty)
        #expect(Array(message.storedPayload) == Array(message.payload))
        message.release(in: pool)
    }
}
