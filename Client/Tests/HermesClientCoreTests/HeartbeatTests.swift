import Testing

@testable import HermesClientCore

@Suite("Heartbeat")
struct HeartbeatTests {
    @Test("a PINGREQ follows 120 s in which nothing was read, whatever was written")
    func ping() throws {
        var client = try Driver()
        client.connect()
        client.clear()
        client.pass(60_000)
        try client.call { machine, moment throws(PublishError) in
            _ = try machine.publish(
                topic: .init(text: "t"), payload: [], qos: .atMostOnce, at: moment)
        }
        client.clear()
        client.pass(59_999)
        #expect(client.sent == [])
        client.pass(1)
        #expect(client.sent == [.pingreq])
    }

    @Test("a client that only receives sends a PINGREQ within its keep alive")
    func onlyReceiving() throws {
        var client = try Driver()
        client.connect()
        client.clear()
        for _ in 0..<15 {
            client.receive(Packets.publish([1], qos: 0))
            client.pass(10_000)
        }
        #expect(client.sent == [.pingreq])
        client.receive(Packets.pingresp)
        client.pass(60_000)
        #expect(client.machine.isConnected)
    }

    @Test("10 s without an answer end the connection")
    func silent() throws {
        var client = try Driver()
        client.connect()
        client.pass(120_000 + 9_999)
        #expect(client.machine.isConnected)
        client.clear()
        client.pass(1)
        #expect(client.events == [.dropped(.silent)])
    }

    @Test("other packets prolong the wait for PINGRESP, to 60 s")
    func onlyOtherPackets() throws {
        var client = try Driver()
        client.connect()
        let begin = client.now
        while client.machine.isConnected, client.now - begin < 600_000 {
            client.receive(Packets.publish([1], qos: 0))
            client.pass(5_000)
        }
        // PINGREQ is due by what was written.
        #expect(client.now - begin == 150_000 + 60_000)
        #expect(client.events.last == .dropped(.silent))
    }

    @Test("an answer keeps the connection")
    func answered() throws {
        var client = try Driver()
        client.connect()
        for _ in 0..<100 {
            client.pass(120_000)
            client.receive(Packets.pingresp)
        }
        #expect(client.machine.isConnected)
        #expect(client.sent.count { $0 == .pingreq } == 100)
    }

    @Test("the report is due every hour")
    func report() throws {
        var client = try Driver()
        client.connect()
        var reports = 0
        for _ in 0..<91 {
            client.clear()
            client.pass(120_000)
            client.receive(Packets.pingresp)
            guard client.actions.contains(.reportDue) else { continue }
            client.call { $0.sendReport([1], topic: [2], at: $1) }
            let identifier = try #require(client.sent.last?.identifier)
            client.receive(Packets.puback(identifier))
            reports += 1
        }
        #expect(reports == 3)
    }

    @Test(
        "a day on a network that forgets teaches its limit, with few connections lost",
        arguments: [
            140, 150, 165, 180, 190, 200, 225, 250, 275, 300, 330, 359, 360, 400, 450, 500, 560,
            600, 5_000,
        ])
    func smart(limitSeconds: Int64) throws {
        var settings = ClientSettings.phone
        settings.heartbeat = .smart
        var client = try Driver(settings)
        client.call { $0.networkChanged(to: .init(text: "cell"), at: $1) }
        client.connect()
        client.clear()
        let end = client.now + 24 * 3_600_000
        var trafficAt = client.now
        var lost = 0
        var rhythms: [Int] = []
        while client.now < end {
            let deadline = try #require(client.machine.nextDeadline)
            client.pass(max(0, deadline - client.now))
            if client.machine.openingNumber != nil {
                client.connect(sessionPresent: true)
                trafficAt = client.now
            }
            if client.sent.contains(.pingreq) {
                if client.now - trafficAt < limitSeconds * 1_000 {
                    client.receive(Packets.pingresp)
                }
                trafficAt = client.now
            }
            lost += client.events.count { $0 == .dropped(.silent) }
            if rhythms.last != client.machine.heartbeatSeconds {
                rhythms.append(client.machine.heartbeatSeconds)
            }
            client.clear()
        }
        let limit = min(Double(limitSeconds), 580)
        let learned = Double(client.machine.heartbeatSeconds)
        #expect(learned <= limit && learned >= 0.9 * limit, "\(rhythms)")
        #expect(lost < rhythms.count, "\(lost) lost in \(rhythms)")
        #expect(
            client.machine.stored.rhythms[.init(text: "cell")]?.search == .stable, "\(rhythms)")
    }

    @Test("a stable rhythm is tried again after seven days, and falls when the network changes")
    func stable() {
        var rhythm = SmartRhythm(changedAtUnixMilliseconds: 0)
        func at(_ days: Double) -> Moment {
            Moment(
                monotonicMilliseconds: 0, unixMilliseconds: Int64(days * 24 * 3_600_000))
        }
        for _ in 0..<10 { rhythm.noteSuccess(at: at(0)) }
        #expect(rhythm.seconds == 240)
        rhythm.noteFailure(at: at(0))
        #expect(rhythm.seconds == 240)
        rhythm.noteFailure(at: at(0))
        #expect(rhythm.seconds == 160 && rhythm.search == .fine)
        rhythm.noteFailure(at: at(0))
        rhythm.noteFailure(at: at(0))
        #expect(rhythm.seconds == 150 && rhythm.search == .stable)
        rhythm.noteSuccess(at: at(6.9))
        #expect(rhythm.search == .stable)
        rhythm.noteSuccess(at: at(7))
        #expect(rhythm.seconds == 160 && rhythm.search == .fine)
    }

    @Test("a silence that no quick reconnect follows teaches nothing")
    func deadNetwork() throws {
        var settings = ClientSettings.phone
        settings.heartbeat = .smart
        var client = try Driver(settings)
        for _ in 0..<2 {
            client.connect()
            client.pass(130_000)
            while client.machine.isConnected == false, client.machine.openingNumber == nil {
                client.pass(1_000)
            }
            client.pass(14_000)
            client.transportClosed(.networkFailure)
            client.pass(40_000)
        }
        #expect(client.machine.stored.rhythms.all.isEmpty)
    }

    @Test("rhythms are kept for each network, 64 of them")
    func labels() throws {
        var table = RhythmTable()
        for label in UInt8(0)..<70 {
            table.set([label], SmartRhythm(changedAtUnixMilliseconds: Int64(label)))
        }
        #expect(table.all.count == 64)
        #expect(table[[5]] == nil)
        #expect(table[[6]] != nil)
    }
}
