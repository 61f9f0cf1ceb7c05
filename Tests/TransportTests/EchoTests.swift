import Glibc
import HermesTesting
import Structures
import Testing
import Transport

@Suite("Transport: connections")
struct EchoTests {
    @Test("many connections get their own frames back")
    func manyConnections() throws {
        var server = try EchoServer()
        let peers = try (0..<300).map { _ in try #require(TestPeer(server.address)) }
        for (number, peer) in peers.enumerated() {
            peer.send(frame(Array("client \(number)".utf8)))
        }
        let isDone = try server.turn { server in
            server.connections.count == 300
                && server.connections.values.allSatisfy { $0.frames.count == 1 }
        }
        #expect(isDone)
        #expect(server.reactor.connectionCount == 300)
        for (number, peer) in peers.enumerated() {
            #expect(peer.receive() == frame(Array("client \(number)".utf8)))
            peer.end()
        }
        let haveEnded = try server.turn { $0.connections.values.allSatisfy(\.hasEnded) }
        #expect(haveEnded)
        for handle in server.handles { server.close(handle) }
        #expect(server.reactor.connectionCount == 0)
        #expect(server.reactor.bytesReceived == server.reactor.bytesSent)
    }

    @Test("frames survive every split, on interleaved connections", arguments: UInt64(1)...12)
    func anySplit(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var server = try EchoServer()
        var links: [(peer: TestPeer, handle: Handle, unsent: [UInt8], frames: [[UInt8]])] = []
        for _ in 0..<4 {
            let (peer, handle) = try server.connect()
            let frames = (0..<30).map { _ in
                random.bytes(
                    random.once(in: 6)
                        ? random.pick([8_189, 8_190, 20_000, 65_533, 65_534, 130_000])
                        : random.number(in: 0...3_000))
            }
            links.append((peer, handle, frames.flatMap(frame), frames))
        }
        var received = [[UInt8]](repeating: [], count: links.count)
        for _ in 0..<20_000 {
            let index = random.number(in: 0...links.count - 1)
            let count =
                random.once(in: 3) ? random.number(in: 1...9) : random.number(in: 1...70_000)
            let sent = links[index].peer.send(links[index].unsent.prefix(count))
            links[index].unsent.removeFirst(sent)
            try server.turn(milliseconds: 0)
            for index in links.indices { received[index] += links[index].peer.receive() }
            if zip(received, links).allSatisfy({
                $0.count == $1.frames.reduce(0) { $0 + 3 + $1.count }
            }) {
                break
            }
        }
        for (index, link) in links.enumerated() {
            #expect(server.connections[link.handle]?.frames == link.frames, "seed \(seed)")
            #expect(received[index] == link.frames.flatMap(frame), "seed \(seed)")
            #expect(server.reactor.keptInput(link.handle).isEmpty)
        }
    }

    @Test("a frame of 1 MiB is collected over many reads, and its memory is freed")
    func largeFrame() throws {
        var server = try EchoServer()
        let (peer, handle) = try server.connect()
        var random = SplitMix64(seed: 4)
        let body = random.bytes(1 << 20)
        let wire = frame(body)
        var offset = 0
        var largestKept = 0
        for _ in 0..<5_000 where server.connections[handle]?.frames.isEmpty == true {
            offset += peer.send(wire[offset..<min(wire.count, offset + 10_007)])
            try server.turn(milliseconds: 5)
            largestKept = max(largestKept, server.reactor.keptInput(handle).count)
        }
        #expect(server.connections[handle]?.frames == [body])
        #expect(largestKept > 1_000_000, "it was kept in between")
        #expect(server.reactor.keptInput(handle).isEmpty)
        var echoed: [UInt8] = []
        for _ in 0..<5_000 where echoed.count < wire.count {
            try server.turn(milliseconds: 5)
            echoed += peer.receive()
        }
        #expect(echoed == wire)
    }

    @Test("input can lie and be taken up frame by frame later")
    func keptInput() throws {
        var server = try EchoServer()
        let (peer, handle) = try server.connect()
        server.connections[handle]?.mostFrames = 0
        let frames = (0..<10).map { [UInt8](repeating: UInt8($0), count: 2_000) }
        peer.send(frames.flatMap(frame) + [0, 0])
        let hasArrived = try server.turn { $0.reactor.keptInput(handle).count == 20_032 }
        #expect(hasArrived)
        server.connections[handle]?.mostFrames = 3
        for taken in [3, 6, 9, 10, 10] {
            server.readKept(handle)
            #expect(server.connections[handle]?.frames == Array(frames.prefix(taken)))
            #expect(server.reactor.keptInput(handle).count == (10 - taken) * 2_003 + 2)
        }
        // The two kept bytes of a length are the beginning of the next frame.
        peer.send([1, 7])
        let isComplete = try server.turn { $0.connections[handle]?.frames.count == 11 }
        #expect(isComplete)
        #expect(server.connections[handle]?.frames.last == [7])
        #expect(server.reactor.keptInput(handle).isEmpty)
    }

    @Test("a paused connection is not read, and continues where it stopped")
    func paused() throws {
        var server = try EchoServer()
        let (peer, handle) = try server.connect()
        server.reactor.stopReading(handle, awaitsEnd: false)
        peer.send(frame([1]) + frame([2]))
        for _ in 0..<5 { #expect(try server.turn(milliseconds: 1) == 0) }
        #expect(server.connections[handle]?.frames == [])
        server.reactor.resumeReading(handle)
        let goesOn = try server.turn { $0.connections[handle]?.frames == [[1], [2]] }
        #expect(goesOn)
    }

    @Test("a paused connection notices that its peer has closed, and can read its last bytes")
    func pausedHangUp() throws {
        var server = try EchoServer()
        let (peer, handle) = try server.connect()
        server.connections[handle]?.echoes = false
        server.reactor.stopReading(handle, awaitsEnd: false)
        peer.send(frame([7]))
        try server.turn(milliseconds: 1)
        peer.reset()
        let isHungUp = try server.turn { $0.connections[handle]?.isHungUp == true }
        #expect(isHungUp)
        let hasFailed = try server.turn { $0.connections[handle]?.failure != nil }
        #expect(hasFailed)
        #expect(server.connections[handle]?.failure?.call == "recv")
        #expect(server.connections[handle]?.failure?.code == ECONNRESET)
    }

    @Test("a peer that ends its sending is read to the end and still gets its answer")
    func halfClosed() throws {
        var server = try EchoServer()
        let (peer, handle) = try server.connect()
        peer.send(frame([1, 2, 3]) + [0])
        peer.finishSending()
        let hasEnded = try server.turn { $0.connections[handle]?.hasEnded == true }
        #expect(hasEnded)
        #expect(server.connections[handle]?.frames == [[1, 2, 3]])
        #expect(server.connections[handle]?.isHungUp == false, "one direction is open")
        #expect(peer.receive() == frame([1, 2, 3]))
        // An end that was seen is not reported again.
        #expect(try server.turn(milliseconds: 1) == 0)
        server.reactor.finishSending(handle)
        #expect(peer.receive() == [] && peer.sawEnd)
    }

    @Test("the peer reads all output, then the end of the stream")
    func finishSending() throws {
        var server = try EchoServer()
        let (peer, handle) = try server.connect()
        [UInt8](repeating: 9, count: 100).withUnsafeBytes {
            server.connections[handle]?.output.append($0, pool: server.pool)
        }
        server.flush(handle)
        server.reactor.finishSending(handle)
        #expect(peer.receive() == [UInt8](repeating: 9, count: 100))
        #expect(peer.receive() == [] && peer.sawEnd)
        // The other direction is still open.
        peer.send(frame([5]))
        let isRead = try server.turn { $0.connections[handle]?.frames == [[5]] }
        #expect(isRead)
    }

    @Test("sending to a closed peer is an error of that connection, not a signal")
    func sendToGone() throws {
        var server = try EchoServer()
        let (peer, handle) = try server.connect()
        server.reactor.stopReading(handle, awaitsEnd: false)
        peer.reset()
        for _ in 0..<50 where server.connections[handle]?.failure == nil {
            [UInt8](repeating: 1, count: 1_000).withUnsafeBytes {
                server.connections[handle]?.output.append($0, pool: server.pool)
            }
            server.flush(handle)
        }
        let failure = server.connections[handle]?.failure
        #expect(failure?.call == "send")
        #expect(failure.map { [EPIPE, ECONNRESET].contains($0.code) } == true)
        #expect(server.reactor.connectionCount == 0)
    }

    @Test("a released reactor closes all its descriptors")
    func deinitCloses() throws {
        let peers: [TestPeer]
        let address: String
        do {
            var server = try EchoServer()
            peers = try (0..<3).map { _ in try server.connect().peer }
            address = server.address
        }
        for peer in peers {
            #expect(peer.receive() == [] && peer.sawEnd)
        }
        #expect(TestPeer(address) == nil && errno == ECONNREFUSED)
    }

    @Test("a connection that is not read reports its peer's end only when asked to")
    func endAwaited() throws {
        var server = try EchoServer()
        let (peer, handle) = try server.connect()
        server.reactor.stopReading(handle, awaitsEnd: false)
        peer.send(frame([1]))
        peer.finishSending()
        #expect(try server.turn(milliseconds: 20) == 0)
        server.reactor.stopReading(handle, awaitsEnd: true)
        #expect(try server.reactor.wait(milliseconds: 1_000) == 1)
        guard
            case .connection(handle, _, _, isHungUp: false, hasEnded: true) =
                server.reactor.event(0)
        else {
            Issue.record("the end was not reported")
            return
        }
        // Earlier input can still be read.
        server.reactor.resumeReading(handle)
        let hasEnded = try server.turn { $0.connections[handle]?.hasEnded == true }
        #expect(hasEnded)
        #expect(server.connections[handle]?.frames == [[1]])
    }
}
