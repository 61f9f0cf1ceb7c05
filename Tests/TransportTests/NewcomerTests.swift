import HermesTesting
import Structures
import Testing
import Transport

@Suite("Transport: newcomers")
struct NewcomerTests {
    @Test("newcomers are asked for in parts; what a connected client sent comes with the wait")
    func parts() throws {
        var server = try EchoServer()
        let (connected, handle) = try server.connect()
        server.acceptsNewcomers = true
        var newcomers: [TestPeer] = []
        for _ in 0..<40 { newcomers.append(try server.connect().peer) }
        for peer in newcomers { peer.send(frame([1])) }
        connected.send(frame([2]))

        // All have sent: one event for the connected client, and one for all newcomers.
        var count = 0
        for _ in 0..<200 where count < 2 { count = try server.reactor.wait(milliseconds: 10) }
        try #require(count == 2)
        var haveNewcomers = false
        for index in 0..<count {
            switch server.reactor.event(index) {
            case .connection(let owner, true, _, _, _): #expect(owner == handle)
            case .newcomers: haveNewcomers = true
            default: Issue.record("another event")
            }
        }
        #expect(haveNewcomers)
        let isEchoed = try server.turn { server in
            server.connections.values.filter { $0.frames.count == 1 }.count == 41
        }
        #expect(isEchoed)
        #expect(server.newcomerEvents.allSatisfy { $0 <= 16 })
        #expect(server.newcomerEvents.reduce(0, +) >= 40)
    }

    @Test("an adopted newcomer is reported by the wait, with what it asks for at that time")
    func adopted() throws {
        var server = try EchoServer()
        server.acceptsNewcomers = true
        let (peer, handle) = try server.connect()
        peer.send(frame([1]))
        var isEchoed = try server.turn { $0.connections[handle]?.frames == [[1]] }
        #expect(isEchoed)
        #expect(server.newcomerEvents == [1])

        server.reactor.adopt(handle)
        server.reactor.adopt(handle)
        peer.send(frame([2]))
        isEchoed = try server.turn { $0.connections[handle]?.frames == [[1], [2]] }
        #expect(isEchoed)
        // Its room for output is asked for where it is now.
        server.connections[handle]?.echoes = true
        let large = [UInt8](repeating: 7, count: 4_000_000)
        var unsent = frame(large)[...]
        var received: [UInt8] = []
        for _ in 0..<20_000 where received.count < large.count + 3 {
            unsent.removeFirst(peer.send(unsent))
            try server.turn(milliseconds: unsent.isEmpty ? 1 : 0)
            if unsent.isEmpty { received += peer.receive() }
        }
        #expect(received.suffix(large.count) == large[...])
        #expect(server.newcomerEvents == [1])
        peer.end()
        let hasEnded = try server.turn { $0.connections[handle]?.hasEnded == true }
        #expect(hasEnded)
        server.close(handle)
        let left = try server.reactor.wait(milliseconds: 0)
        #expect(left == 0)
    }

    @Test("nothing is reported of a newcomer that is closed, before and after it was adopted")
    func closed() throws {
        var server = try EchoServer()
        server.acceptsNewcomers = true
        let (first, early) = try server.connect()
        let (second, late) = try server.connect()
        first.send(frame([1]))
        second.send(frame([1]))
        server.reactor.adopt(late)
        server.close(early)
        server.close(late)
        server.reactor.adopt(late)
        let (events, newcomers) = (
            try server.reactor.wait(milliseconds: 0), server.reactor.askNewcomers()
        )
        #expect(events == 0)
        #expect(newcomers == 0)
    }
}
