import Structures
import Testing

@testable import BrokerRuntime

@Suite("The order in which TLS handshakes give way")
struct HandshakeOrderTests {
    private static let patience = HandshakeOrder.patienceMilliseconds

    private func time(_ milliseconds: UInt64) -> MonotonicTime {
        MonotonicTime(milliseconds: milliseconds)
    }

    private func handle(_ index: UInt32, _ generation: UInt32 = 1) -> Handle {
        Handle(index: index, generation: generation)
    }

    @Test("the handshake that waits longest comes first; an ended one never")
    func order() {
        var order = HandshakeOrder()
        for index in 0..<3 { order.begin(handle(UInt32(index)), at: time(UInt64(index))) }
        #expect(order.oldest { _ in true }?.connection == handle(0))
        #expect(order.oldest { _ in true }?.endsAt == time(Self.patience))
        order.end(handle(0))
        // A new connection at the index of an ended one is another handshake.
        order.begin(handle(0, 2), at: time(3))
        order.end(handle(0, 1))
        #expect(order.oldest { _ in true }?.connection == handle(1))
        order.end(handle(1))
        order.end(handle(2))
        #expect(order.oldest { _ in true }?.connection == handle(0, 2))
        order.end(handle(0, 2))
        #expect(order.oldest { _ in true }?.connection == nil)
    }

    @Test("a handshake with a running step is not replaced, and its client's time stops")
    func steps() {
        var order = HandshakeOrder()
        order.begin(handle(0), at: time(0))
        order.begin(handle(1), at: time(100))
        order.beginStep(handle(0), at: time(500))
        #expect(order.oldest { $0 == handle(1) }?.connection == handle(1))
        // The minute of waiting for a worker does not count against the client.
        order.awaitClient(handle(0), at: time(60_500))
        order.end(handle(1))
        let left = order.oldest { _ in true }
        #expect(left?.connection == handle(0))
        #expect(left?.endsAt == time(60_000 + Self.patience))
        // The client's own time is not restored by partial answers.
        for step in 0..<10 {
            let now = 60_500 + UInt64(step) * 300
            order.awaitClient(handle(0), at: time(now))
            order.beginStep(handle(0), at: time(now + 300))
        }
        order.awaitClient(handle(0), at: time(70_000))
        #expect(order.oldest { _ in true }?.endsAt == time(70_000))
    }

    @Test("handshakes that come and go behind one that stalls take no room")
    func bounded() {
        var order = HandshakeOrder()
        order.begin(handle(0), at: time(0))
        for round in UInt64(1)...10_000 {
            let other = handle(1, UInt32(round))
            order.begin(other, at: time(round))
            order.beginStep(other, at: time(round))
            order.awaitClient(other, at: time(round))
            order.end(other)
        }
        #expect(order.entryCount < 100)
        #expect(order.oldest { _ in true }?.connection == handle(0))
    }
}
