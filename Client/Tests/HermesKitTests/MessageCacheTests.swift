import Testing

@testable import HermesKit
@testable import HermesClientCore

@Suite("The messages that came lately")
struct MessageCacheTests {
    private static func message(_ number: Int, bytes: Int = 0) -> HermesClient.ReceivedMessage {
        HermesClient.ReceivedMessage(
            InboundMessage(
                number: UInt64(number), topic: Array("\(number)".utf8),
                payload: [UInt8](repeating: 0x61, count: bytes), qos: .atLeastOnce, retain: false,
                facts: nil))
    }

    private static func topics(_ cache: inout MessageCache) -> [String] {
        cache.all(at: 0).map(\.topic)
    }

    @Test("of more than 500 the oldest leave")
    func count() {
        var cache = MessageCache()
        for number in 0..<502 { cache.insert(Self.message(number)) }
        #expect(Self.topics(&cache) == (2..<502).map { "\($0)" })
    }

    @Test("of more than 1 MiB the oldest leave; a message that is larger leaves none")
    func bytes() {
        var cache = MessageCache()
        let half = (1 << 19) - 1
        for number in 0..<3 { cache.insert(Self.message(number, bytes: half)) }
        #expect(Self.topics(&cache) == ["1", "2"])
        cache.insert(Self.message(3, bytes: 1))
        #expect(Self.topics(&cache) == ["2", "3"])
        cache.insert(Self.message(4, bytes: 1 << 20))
        #expect(Self.topics(&cache) == [])
        cache.insert(Self.message(5, bytes: 2 * half))
        #expect(Self.topics(&cache) == ["5"])
    }

    @Test("after 24 hours a message leaves")
    func age() {
        var cache = MessageCache()
        let message = Self.message(1)
        cache.insert(message)
        let last = message.receivedAtMilliseconds + MessageCache.mostMilliseconds
        #expect(cache.all(at: last).count == 1)
        #expect(cache.all(at: last + 1).count == 0)
    }
}
