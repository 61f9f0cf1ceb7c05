import Testing

@testable import HermesClientCore

@Suite("Connecting and reconnecting")
struct ConnectionTests {
    @Test("CONNECT asks for a session that stays, and is sent when the transport is ready")
    func connect() throws {
        var client = try Driver()
        client.start()
        #expect(client.sent == [])
        client.transportOpened()
        #expect(client.sent == [.connect(keepAlive: 150, userName: nil)])
        client.receive(Packets.connack(sessionPresent: false))
        #expect(
            client.states == [.connecting(attempt: 1), .connected(sessionPresent: false)])
    }

    @Test("a first session is no lost session")
    func firstSession() throws {
        var client = try Driver()
        client.connect()
        #expect(client.events == [])
        client.transportClosed()
        client.clear()
        client.connect()
        #expect(client.events == [.sessionLost])
    }

    @Test("a clean session ends with its connection, and none is told as lost")
    func cleanSession() throws {
        var settings = ClientSettings.phone
        settings.keepsSession = false
        var client = try Driver(settings)
        client.start()
        client.call { machine, moment in
            try? machine.subscribe([0x61], qos: .atLeastOnce, at: moment)
        }
        for _ in 0..<3 {
            client.clear()
            client.connect()
            // Byte 9 of CONNECT are its flags; bit 1 asks for a clean session.
            #expect(client.writes.first.map { $0[9] } == 0b10)
            let request = client.sent.compactMap {
                if case .subscribe(let identifier, _) = $0 { identifier } else { nil }
            }
            #expect(request.count == 1)
            client.receive(Packets.suback(request.first ?? 0, [1]))
            // Closes that come soon look like a fight.
            client.pass(61_000)
            client.transportClosed()
            #expect(!client.events.contains(.sessionLost))
        }
        #expect(client.machine.counters.lostSessions == 0)
        #expect(client.machine.counters.connects == 3)
        #expect(try client.restarted(settings).machine.stored == client.machine.stored)
    }

    @Test("CONNECT carries the will, behind the client identifier")
    func will() throws {
        var settings = ClientSettings.phone
        settings.will = ClientWill(
            topic: Array("gone".utf8), payload: [7], qos: .atLeastOnce, retain: true)
        settings.credentials = ClientCredentials(userName: [0x75], password: [0x70])
        var client = try Driver(settings)
        client.start()
        client.transportOpened()
        var connect: [UInt8] = [0x10, 32, 0, 4]
        connect += Array("MQTT".utf8)
        connect += [4, 0b1110_1100, 0, 150, 0, 5]
        connect += Array("phone".utf8)
        connect += [0, 4]
        connect += Array("gone".utf8)
        connect += [0, 1, 7, 0, 1, 0x75, 0, 1, 0x70]
        #expect(client.writes.first == connect)
        #expect(ClientWill(topic: [0x23], payload: [], qos: .atMostOnce, retain: false) == nil)
        let long = [UInt8](repeating: 0, count: 65_536)
        #expect(ClientWill(topic: [0x61], payload: long, qos: .atMostOnce, retain: false) == nil)
    }

    @Test("six tries come, each after 1 to 15 s; then they become rarer, up to one in 5 minutes")
    func reconnectRule() throws {
        let steps: [Int64] = [30_000, 60_000, 120_000, 240_000]
        for seed in UInt64(1)...200 {
            var client = try Driver(seed: seed)
            client.connect()
            client.transportClosed(.networkFailure)
            for attempt in 1...20 {
                let delay = try #require(client.retryDelay)
                let step = attempt - 7 < steps.count ? steps[max(0, attempt - 7)] : 300_000
                let expected: ClosedRange<Int64> =
                    attempt <= 6 ? 1_000...15_000 : step / 2...step * 3 / 2
                #expect(expected.contains(delay), "try \(attempt), seed \(seed)")
                client.pass(delay)
                #expect(client.machine.openingNumber != nil)
                client.transportClosed(.networkFailure)
            }
        }
    }

    @Test("after an outage of 75 s a phone in the foreground is back within 3 minutes")
    func outage() throws {
        var waits: [Int64] = []
        for seed in UInt64(1)...200 {
            var client = try Driver(seed: seed)
            client.connect()
            client.pass(100_000)
            let begin = client.now
            client.transportClosed()
            while client.now - begin < 75_000 {
                client.pass(client.retryDelay ?? 0)
                if client.now - begin < 75_000 { client.transportClosed(.networkFailure) }
            }
            waits.append(client.now - begin)
        }
        #expect(try #require(waits.max()) < 180_000)
        #expect(waits.sorted()[100] < 110_000)
    }

    @Test("a look at the app ends the wait at once")
    func tryNow() throws {
        var client = try Driver()
        client.start()
        for _ in 0..<9 {
            client.transportClosed(.networkFailure)
            client.pass(client.retryDelay ?? 0)
        }
        client.transportClosed(.networkFailure)
        client.call { $0.tryNow(at: $1) }
        #expect(client.states.last == .connecting(attempt: 1))
    }

    @Test("many connections of under a minute do not mean minutes of waiting")
    func shortConnections() throws {
        var client = try Driver()
        client.connect()
        for _ in 0..<30 {
            client.pass(30_000)
            client.transportClosed(.networkFailure)
            #expect(try #require(client.retryDelay) <= 45_000)
            client.connect(sessionPresent: true)
        }
    }

    @Test("the six delays of many clients spread evenly")
    func spread() throws {
        var buckets = Array(repeating: 0, count: 14)
        let clients = 2_000
        for seed in 0..<UInt64(clients) {
            var client = try Driver(seed: seed)
            client.connect()
            client.transportClosed(.networkFailure)
            let delay = try #require(client.retryDelay)
            buckets[min(13, Int((delay - 1_000) / 1_000))] += 1
        }
        for bucket in buckets {
            #expect(abs(bucket - clients / 14) < clients / 14 * 3 / 10, "\(buckets)")
        }
    }

    @Test("a connection of a minute lets the count begin anew, a shorter one does not")
    func count() throws {
        var client = try Driver()
        client.connect()
        for _ in 1...3 {
            client.transportClosed(.networkFailure)
            client.pass(15_000)
        }
        client.connect(sessionPresent: true)
        client.pass(59_000)
        client.transportClosed(.networkFailure)
        #expect(client.machine.reconnect.attempt == 5)
        client.connect(sessionPresent: true)
        client.pass(61_000)
        client.transportClosed(.networkFailure)
        #expect(client.machine.reconnect.attempt == 2)
    }

    @Test(
        "CONNACK 1 and 2 stop the client",
        arguments: [
            (UInt8(1), StopReason.unacceptableProtocolVersion), (2, .identifierRejected),
        ])
    func refused(code: UInt8, reason: StopReason) throws {
        var client = try Driver()
        client.start()
        client.transportOpened()
        client.receive(Packets.connack(code: code))
        #expect(client.states.last == .stopped(reason))
        #expect(client.machine.nextDeadline == nil)
        #expect(client.closed == 1)
    }

    @Test("CONNACK 3 counts as a failed try")
    func unavailable() throws {
        var client = try Driver()
        client.start()
        client.transportOpened()
        client.receive(Packets.connack(code: 3))
        #expect(client.events == [.dropped(.serverUnavailable)])
        #expect(client.retryDelay != nil)
    }

    @Test("CONNACK 4 and 5 ask for credentials once, and stop at the second", arguments: [4, 5])
    func credentials(code: UInt8) throws {
        var client = try Driver()
        client.start()
        client.transportOpened()
        client.receive(Packets.connack(code: code))
        #expect(client.actions.last == .requestCredentials)
        let fresh = ClientCredentials(userName: .init(text: "u"), password: .init(text: "p"))
        client.clear()
        client.call { $0.credentialsProvided(fresh, at: $1) }
        client.transportOpened()
        #expect(client.sent == [.connect(keepAlive: 150, userName: "u")])
        client.receive(Packets.connack(code: code))
        #expect(client.states.last == .stopped(.credentialsRefused))
    }

    @Test("credentials that never come do not end the tries")
    func noCredentials() throws {
        var client = try Driver()
        client.start()
        client.transportOpened()
        client.receive(Packets.connack(code: 4))
        client.pass(30_000 + 15_000)
        #expect(client.machine.openingNumber != nil)
    }

    @Test("credentials that were asked for before the background are asked for again after it")
    func credentialsAcrossBackground() throws {
        var client = try Driver()
        client.start()
        client.transportOpened()
        client.receive(Packets.connack(code: 4))
        client.call { $0.enteredBackground(at: $1) }
        client.call { $0.enteredForeground(at: $1) }
        client.transportOpened()
        client.clear()
        client.receive(Packets.connack(code: 4))
        #expect(client.actions.last == .requestCredentials)
    }

    @Test("a fight is recognised within three changes, whatever its spread", arguments: 0..<50)
    func takeOver(seed: Int) throws {
        var random = SplitMix64(seed: UInt64(seed))
        var client = try Driver(seed: UInt64(seed))
        client.connect()
        for _ in 0..<2 {
            // The other client returns after a while of its own.
            client.pass(Int64.random(in: 0...15_000, using: &random))
            client.transportClosed()
            if client.retryDelay != nil { client.connect(sessionPresent: true) }
        }
        // The broker is there: it is asked with a transport connection that says nothing.
        client.clear()
        client.transportOpened()
        #expect(client.sent == [])
        #expect(client.closed == 1)
        guard case .waiting(let until, .takenOver)? = client.states.last else {
            Issue.record("\(client.states)")
            return
        }
        #expect((45_000...75_000).contains(until - client.now))
    }

    @Test("a broker that crashes again and again is no fight, and its return is spread")
    func crashes() throws {
        var delays: Set<Int64> = []
        for seed in UInt64(1)...200 {
            var client = try Driver(seed: seed)
            client.connect()
            for _ in 0..<6 {
                client.pass(Int64(seed % 45) * 100)
                client.transportClosed()
                // Nobody listens right after the crash.
                client.clear()
                if client.retryDelay == nil { client.transportClosed(.networkFailure) }
                #expect(client.closed == 0, "what has closed is not closed")
                let delay = try #require(client.retryDelay)
                #expect((1_000...45_000).contains(delay))
                delays.insert(delay)
                client.connect(sessionPresent: true)
            }
            #expect(
                !client.states.contains {
                    if case .waiting(_, .takenOver) = $0 { true } else { false }
                })
        }
        #expect(delays.count > 900)
    }

    @Test("closes amid traffic, or with a connection of a minute between, are no fight")
    func noTakeOver() throws {
        var client = try Driver()
        client.connect()
        for number in UInt16(1)...10 {
            client.pass(2_000)
            client.receive(Packets.publish([1], identifier: number))
            client.pass(500)
            client.transportClosed()
            #expect(client.retryDelay != nil)
            client.connect(sessionPresent: true)
        }
        for _ in 0..<10 {
            client.pass(10_000)
            client.transportClosed()
            #expect(client.retryDelay != nil)
            client.connect(sessionPresent: true)
            client.pass(60_000)
            client.transportClosed()
            client.connect(sessionPresent: true)
        }
    }

    @Test("neither transport nor broker can hold a try for ever")
    func timeouts() throws {
        var client = try Driver()
        client.start()
        client.pass(15_000)
        #expect(client.events == [.dropped(.openTimeout)])
        client.pass(15_000)
        client.transportOpened()
        client.clear()
        client.pass(10_000)
        #expect(client.events == [.dropped(.connackTimeout)])
    }

    @Test("a write that finds the connection gone is tried on a new one at once, and once")
    func writeFailed() throws {
        var client = try Driver()
        client.connect()
        client.transportClosed(.writeFailed)
        #expect(client.machine.openingNumber != nil)
        client.connect(sessionPresent: true)
        client.transportClosed(.writeFailed)
        #expect(client.machine.openingNumber == nil)
    }

    @Test("events of an old connection change nothing")
    func oldConnection() throws {
        var client = try Driver()
        client.connect()
        let old = client.lastConnection
        client.transportClosed()
        client.connect(sessionPresent: true)
        client.clear()
        client.call { $0.transportClosed(old, .closedByPeer, at: $1) }
        client.call { $0.received([0xFF, 0xFF], on: old, at: $1) }
        client.call { $0.transportOpened(old, at: $1) }
        #expect(client.actions == [])
        #expect(client.machine.isConnected)
    }

    @Test(
        "a packet that breaks a rule ends the connection with its reason",
        arguments: [
            ([0xF0, 0], DropReason.malformed(.reservedPacketType)),
            ([0x40, 2, 0, 0], .malformed(.zeroPacketIdentifier)),
            ([0x30, 0xFF, 0xFF, 0xFF, 0xFF], .malformed(.remainingLengthTooLong)),
            ([0x30, 0xFF, 0xFF, 0xFF, 0x7F], .malformed(.packetTooLarge)),
            ([0x20, 2, 0, 0], .violation(.unexpectedConnack)),
            ([0xC0, 0], .violation(.clientPacket(.pingreq))),
            ([0x10, 0], .malformed(.truncated)),
        ])
    func broken(bytes: [UInt8], reason: DropReason) throws {
        var client = try Driver()
        client.connect()
        client.clear()
        client.receive(bytes: bytes)
        #expect(client.events == [.dropped(reason)])
        #expect(client.closed == 1)
    }

    @Test("no packet counts before CONNACK")
    func beforeConnack() throws {
        var client = try Driver()
        client.start()
        client.transportOpened()
        client.receive(Packets.publish([1]))
        #expect(client.events == [.dropped(.violation(.packetBeforeConnack(.publish)))])
        #expect(client.takeAll() == [])
    }

    @Test("a packet that comes byte by byte must be whole after 120 s")
    func trickle() throws {
        var client = try Driver()
        client.connect()
        let begin = client.now
        client.receive(bytes: [0x30, 0xFF, 0x7F])
        while client.machine.isConnected, client.now - begin < 600_000 {
            client.pass(1_000)
            client.receive(bytes: [0])
        }
        #expect(client.events.last == .dropped(.unfinishedPacket))
        #expect(client.now - begin == 120_000)
    }

    @Test("packets arrive whole however they are cut")
    func cut() throws {
        let bytes =
            Packets.publish([1, 2, 3], identifier: 1)
            + Packets.publish(Array(repeating: 7, count: 300), identifier: 2) + Packets.pingresp
        for size in 1...bytes.count {
            var client = try Driver()
            client.connect()
            var rest = bytes[...]
            while !rest.isEmpty {
                client.receive(bytes: Array(rest.prefix(size)))
                rest = rest.dropFirst(size)
            }
            let messages = client.takeAll()
            #expect(messages.map(\.payload.count) == [3, 300], "parts of \(size)")
        }
    }
}
