import Testing

@testable import HermesClientCore

@Suite("Foreground, background and networks")
struct LifecycleTests {
    @Test("entering the background tells the broker, closes, and tries nothing")
    func background() throws {
        var client = try Driver()
        client.connect()
        client.clear()
        client.call { $0.enteredBackground(at: $1) }
        #expect(client.sent == [.disconnect])
        #expect(client.closed == 1)
        #expect(client.states == [.suspended])
        client.clear()
        client.call { $0.networkChanged(to: [1], at: $1) }
        client.pass(600_000)
        #expect(client.opened == 0)
    }

    @Test("the foreground connects anew, at once and with a new count, whatever there was")
    func foreground() throws {
        var client = try Driver()
        client.connect()
        client.call { $0.enteredBackground(at: $1) }
        client.call { $0.enteredForeground(at: $1) }
        #expect(client.machine.openingNumber != nil)
        client.connect(sessionPresent: true)
        let old = client.lastConnection
        client.clear()
        // The program was suspended without being told.
        client.now += 3_600_000
        client.call { $0.enteredForeground(at: $1) }
        #expect(client.sent == [.disconnect])
        #expect(client.actions.contains(.close(old)))
        #expect(client.states.last == .connecting(attempt: 1))
        #expect(client.lastConnection != old)
    }

    @Test("in the foreground a healthy connection is kept, and must show that it is alive")
    func foregroundAgain() throws {
        var client = try Driver()
        client.connect()
        client.pass(20_000)
        client.clear()
        client.call { $0.enteredForeground(at: $1) }
        #expect(client.sent == [.pingreq])
        #expect(client.closed == 0 && client.opened == 0)
        client.receive(Packets.pingresp)
        client.pass(30_000)
        #expect(client.machine.isConnected)
        client.call { $0.enteredForeground(at: $1) }
        client.pass(3_000)
        #expect(client.machine.openingNumber != nil)
    }

    @Test("one network told ten times makes one connection, and does not skip the wait")
    func sameNetwork() throws {
        var client = try Driver()
        client.start()
        for _ in 0..<10 { client.call { $0.networkChanged(to: [1], at: $1) } }
        #expect(client.opened == 1)
        client.transportClosed(.networkFailure)
        for _ in 0..<40 { client.call { $0.networkChanged(to: [1], at: $1) } }
        #expect(client.opened == 1)
        #expect(client.retryDelay != nil)
    }

    @Test("networks that flap do not make a try each")
    func flapping() throws {
        var client = try Driver()
        client.start()
        client.call { $0.networkChanged(to: [1], at: $1) }
        client.transportClosed(.networkFailure)
        for _ in 0..<40 {
            client.call { $0.networkChanged(to: nil, at: $1) }
            client.call { $0.networkChanged(to: [1], at: $1) }
            if client.machine.openingNumber != nil { client.transportClosed(.networkFailure) }
            client.pass(60)
        }
        #expect(client.opened <= 3)
    }

    @Test("a launch by push ends after its 25 s", arguments: [true, false])
    func launchedByPush(isToldFirst: Bool) throws {
        var client = try Driver()
        if isToldFirst { client.call { $0.wokenByPush(at: $1) } }
        client.start()
        if !isToldFirst { client.call { $0.wokenByPush(at: $1) } }
        client.transportOpened()
        client.receive(Packets.connack(sessionPresent: true))
        client.clear()
        client.pass(25_000)
        #expect(client.states == [.suspended])
        client.pass(1_000_000)
        #expect(client.opened == 0)
        client.call { $0.enteredForeground(at: $1) }
        #expect(client.opened == 1)
    }

    @Test("a push while the app is on the screen ends nothing")
    func pushInForeground() throws {
        var client = try Driver()
        client.connect()
        client.pass(10_000)
        client.call { $0.wokenByPush(at: $1) }
        client.receive(Packets.pingresp)
        client.pass(60_000)
        #expect(client.machine.isConnected)
    }

    @Test("a wake-up in the background connects at once, for 25 s")
    func woken() throws {
        var client = try Driver()
        client.connect()
        client.call { $0.enteredBackground(at: $1) }
        client.pass(3_600_000)
        client.call { $0.wokenByPush(at: $1) }
        client.connect(sessionPresent: true)
        #expect(client.machine.isConnected)
        client.clear()
        client.pass(25_000)
        #expect(client.sent == [.disconnect])
        #expect(client.states == [.suspended])
    }

    @Test("six failed tries in the background end in suspension")
    func wokenWithoutNetwork() throws {
        var client = try Driver()
        client.connect()
        client.call { $0.enteredBackground(at: $1) }
        client.call { $0.wokenByPush(at: $1) }
        while client.machine.openingNumber != nil {
            client.transportClosed(.networkFailure)
            if let delay = client.retryDelay { client.pass(delay) }
        }
        #expect(client.states.last == .suspended)
    }

    @Test("a change of the network is probed with 3 s, and a dead connection replaced at once")
    func networkChange() throws {
        var client = try Driver()
        client.connect()
        client.clear()
        client.call { $0.networkChanged(to: [1], at: $1) }
        #expect(client.sent == [.pingreq])
        client.receive(Packets.pingresp)
        client.pass(60_000)
        #expect(client.machine.isConnected)
        client.call { $0.networkChanged(to: [2], at: $1) }
        client.clear()
        client.pass(3_000)
        #expect(client.events == [.dropped(.probeFailed)])
        #expect(client.machine.openingNumber != nil)
    }

    @Test("a probe also shortens the wait for a PINGRESP that is under way")
    func probeDuringPing() throws {
        var client = try Driver()
        client.connect()
        client.pass(121_000)
        client.call { $0.networkChanged(to: [1], at: $1) }
        client.clear()
        client.pass(3_000)
        #expect(client.events == [.dropped(.probeFailed)])
    }

    @Test("a network that appears ends the wait; one that goes does not")
    func networkWhileWaiting() throws {
        var client = try Driver()
        client.connect()
        for _ in 0..<8 {
            client.transportClosed(.networkFailure)
            if let delay = client.retryDelay { client.pass(delay) }
        }
        client.transportClosed(.networkFailure)
        client.call { $0.networkChanged(to: nil, at: $1) }
        #expect(client.machine.openingNumber == nil)
        client.call { $0.networkChanged(to: [1], at: $1) }
        #expect(client.states.last == .connecting(attempt: 1))
    }

    @Test("stop ends everything until start")
    func stop() throws {
        var client = try Driver()
        client.connect()
        client.clear()
        client.call { $0.stop(at: $1) }
        #expect(client.sent == [.disconnect])
        #expect(client.states == [.stopped(.requested)])
        client.call { $0.enteredForeground(at: $1) }
        client.call { $0.networkChanged(to: [1], at: $1) }
        client.call { $0.wokenByPush(at: $1) }
        client.pass(10_000_000)
        #expect(client.opened == 0)
        client.start()
        #expect(client.opened == 1)
    }

    @Test("a message is counted where its acknowledgement is stored, whatever kill comes")
    func countersAcrossKill() throws {
        var client = try Driver.subscribed(to: "t")
        for round in UInt64(1)...5 {
            for (index, text) in ["a/\(round)", "plain \(round)", "=n\(round)"].enumerated() {
                client.receive(
                    Packets.publish(
                        .init(text: text), qos: UInt8(1 + index % 2),
                        identifier: UInt16(index + 1)))
                for message in client.takeAll() { client.acknowledge(message.number) }
            }
            #expect(client.machine.counters.received == round * 3)
            try client.publish([1])
            client.receive(Packets.puback(client.identifier()))
            client = try client.restarted()
            client.connect(sessionPresent: true)
        }
        #expect(client.machine.counters.received == 15)
        #expect(client.machine.counters.published == 5)
        #expect(client.machine.counters.connects == 6)
        #expect(try client.restarted().machine.counters == client.machine.counters)
    }

    @Test("the log names the client whose it is")
    func owner() throws {
        var client = try Driver()
        try client.publish([1])
        let stored = try client.restarted().machine.stored
        #expect(stored.owner == Array("phone".utf8))
        #expect(try ClientLog.recover(ClientLog.file(stored)).state == stored)
    }

    @Test("the counters survive the background and a kill")
    func counters() throws {
        var client = try Driver()
        client.connect()
        client.receive(Packets.publish(.init(text: "=a"), qos: 0))
        client.call { $0.enteredBackground(at: $1) }
        let counters = try client.restarted().machine.counters
        #expect(counters.received == 1)
        #expect(counters.connects == 1)
        #expect(counters.sinceUnixMilliseconds == client.moment.unixMilliseconds)
    }
}
