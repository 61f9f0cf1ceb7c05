import Glibc
import HermesTesting
import Structures
import Testing
import Transport

@Suite("Transport: stale events")
struct StaleEventTests {
    @Test("an event of a connection that closed in the same batch finds no owner")
    func staleInBatch() throws {
        // Batch                          Descriptor      Slot
        // event 0: connection A          7               0
        // event 1: connection B          8               1
        // handling 0 closes B and accepts C, which the kernel gives B's number:
        //          connection C          8               1, next generation
        // event 1 speaks of B, not of C.
        var server = try EchoServer()
        let (first, _) = try server.connect()
        let (second, _) = try server.connect()
        first.send(frame([1]))
        second.send(frame([2]))
        let third = try #require(TestPeer(server.address))
        server.accepts = false
        var count = 0
        for _ in 0..<200 where count < 3 { count = try server.reactor.wait(milliseconds: 10) }
        try #require(count == 3, "both connections and the listener")

        var live: [(index: Int, handle: Handle)] = []
        for index in 0..<count {
            if case .connection(let handle, true, _, false, _) = server.reactor.event(index) {
                live.append((index, handle))
            }
        }
        try #require(live.count == 2)
        let closed = live[1].handle
        server.close(closed)
        server.acceptAll(0)
        let successor = try #require(server.handles.last)
        #expect(successor.index == closed.index)
        #expect(successor.generation != closed.generation)

        guard case .stale = server.reactor.event(live[1].index) else {
            Issue.record("the event found \(server.reactor.event(live[1].index))")
            return
        }
        guard
            case .connection(live[0].handle, true, _, false, _) =
                server.reactor.event(live[0].index)
        else {
            Issue.record("the other connection's event is lost")
            return
        }
        // The successor is untouched.
        third.send(frame([3]))
        let isRead = try server.turn { $0.connections[successor]?.frames == [[3]] }
        #expect(isRead)
    }

    @Test("nothing done with an old handle touches its successor")
    func staleHandle() throws {
        var server = try EchoServer()
        let (oldPeer, old) = try server.connect()
        server.close(old)
        let (peer, handle) = try server.connect()
        try #require(handle.index == old.index)

        peer.send(frame([1, 2]) + [0])
        server.connections[handle]?.mostFrames = 0
        let hasArrived = try server.turn { $0.reactor.keptInput(handle).count == 6 }
        #expect(hasArrived)

        guard case .wouldBlock = server.reactor.receive(old) else {
            Issue.record("an old handle reads")
            return
        }
        #expect(server.reactor.keptInput(old).isEmpty)
        [9, 9, 9].withUnsafeBytes { server.reactor.keep(old, $0, from: 0) }
        server.reactor.keep(old, UnsafeRawBufferPointer(start: nil, count: 0), from: 0)
        server.reactor.stopReading(old, awaitsEnd: false)
        server.reactor.finishSending(old)
        var output = OutputQueue()
        [5, 5].withUnsafeBytes { output.append($0, pool: server.pool) }
        guard case .all = server.reactor.send(old, &output) else {
            Issue.record("an old handle sends")
            return
        }
        #expect(output.isEmpty, "its output is given back")
        #expect(server.reactor.address(of: old) == "unknown")
        server.reactor.close(old)

        #expect(server.reactor.connectionCount == 1)
        #expect(server.reactor.address(of: handle) == "127.0.0.1:\(peer.localPort)")
        #expect([UInt8](server.reactor.keptInput(handle)) == frame([1, 2]) + [0])
        #expect(peer.receive() == [] && !peer.sawEnd)
        #expect(oldPeer.receive() == [] && oldPeer.sawEnd)
        server.connections[handle]?.mostFrames = .max
        peer.send([0, 0])
        let isRead = try server.turn { $0.connections[handle]?.frames == [[1, 2], []] }
        #expect(isRead)
    }

    @Test("a slot is used again and again, never under an old name")
    func generations() throws {
        var server = try EchoServer()
        var seen: Set<Handle> = []
        for _ in 0..<200 {
            let (_, handle) = try server.connect()
            #expect(seen.insert(handle).inserted)
            #expect(handle.index == 0)
            server.close(handle)
        }
        #expect(server.reactor.connectionCount == 0)
    }
}
