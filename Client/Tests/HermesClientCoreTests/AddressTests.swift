import Testing

@testable import HermesClientCore

@Suite("Several addresses")
struct AddressTests {
    private static func client(_ seed: UInt64) throws -> Driver {
        var settings = ClientSettings.phone
        settings.addresses = 3
        return try Driver(settings, seed: seed)
    }

    /// The addresses of the connections that were opened since the last `clear()`.
    private static func opened(_ client: Driver) -> [Int] {
        client.actions.compactMap { if case .open(let number) = $0 { number.address } else { nil } }
    }

    @Test("the first one is random, the others follow at once, and all are one try")
    func order() throws {
        var first: Set<Int> = []
        for seed in UInt64(1)...50 {
            var client = try Self.client(seed)
            client.start()
            first.insert(Self.opened(client)[0])
            for _ in 0..<3 {
                #expect(client.retryDelay == nil)
                client.transportClosed(.connectionRefused)
            }
            #expect(Set(Self.opened(client)) == [0, 1, 2])
            #expect(client.retryDelay != nil)
            #expect(client.machine.reconnect.attempt == 2)
        }
        #expect(first == [0, 1, 2])
    }

    @Test("a dead address costs 5 s, silent or without CONNACK, and not before the one that served")
    func dead() throws {
        for seed in UInt64(1)...20 {
            var client = try Self.client(seed)
            client.start()
            client.pass(5_000)
            #expect(Self.opened(client).count == 2)
            client.transportOpened()
            client.pass(5_000)
            #expect(Self.opened(client).count == 3)
            let good = try #require(Self.opened(client).last)
            client.transportOpened()
            client.receive(Packets.connack(sessionPresent: false))
            #expect(client.machine.isConnected)
            client.clear()
            client.transportClosed(.networkFailure)
            client.pass(client.retryDelay ?? 0)
            #expect(Self.opened(client) == [good])
        }
    }
}
