import HermesTesting
import MQTTCodec
import Testing

@testable import MQTTCore

/// What can happen to a connection.
private enum Event: Hashable, CaseIterable {
    case connect, connectWithoutIdentifier, publish, disconnect, connack
    case accepted, refused, delayed, endDelay, opened, closed
}

/// The machine's states, as its docstring draws them.
private enum Stage: Hashable {
    case awaitingConnect, authenticating, opening, delayed, active, closed
}

@Suite("Connection machine")
struct ConnectionMachineTests {
    private static let clean = Connect(
        version: .v3_1_1, cleanSession: true, keepAlive: 0,
        clientIdentifier: ByteRange(offset: 0, count: 1))
    private static let persistent = Connect(
        version: .v3_1_1, cleanSession: false, keepAlive: 0,
        clientIdentifier: ByteRange(offset: 0, count: 0))

    @Test("every sequence of up to five events is answered as drawn")
    func allSequences() {
        var sequences = 0
        func walk(_ machine: ConnectionMachine, _ stage: Stage, _ path: [Event]) {
            #expect(machine.isAwaitingConnect == (stage == .awaitingConnect), "\(path)")
            #expect(
                machine.holdsInput == [.authenticating, .opening, .delayed].contains(stage),
                "\(path)")
            #expect(machine.isDelayed == (stage == .delayed), "\(path)")
            #expect(machine.isActive == (stage == .active), "\(path)")
            #expect(machine.isClosed == (stage == .closed), "\(path)")
            sequences += 1
            guard path.count < 5 else { return }
            // A take-over is delayed where a session would be opened, and nowhere else.
            for event in Event.allCases where event != .delayed || stage == .opening {
                var next = machine
                let answer = apply(event, to: &next)
                let (expected, nextStage) = expectation(event, in: stage)
                #expect(answer == expected, "\(path) then \(event)")
                walk(next, nextStage, path + [event])
            }
        }
        walk(ConnectionMachine(), .awaitingConnect, [])
        #expect(sequences > (0...5).reduce(0) { $0 + power(Event.allCases.count - 1, $1) })
    }

    private func power(_ base: Int, _ exponent: Int) -> Int {
        (0..<exponent).reduce(1) { product, _ in product * base }
    }

    private func apply(_ event: Event, to machine: inout ConnectionMachine) -> String {
        switch event {
        case .connect: text(machine.receive(Self.clean, identifierCount: 1))
        case .connectWithoutIdentifier: text(machine.receive(Self.persistent, identifierCount: 0))
        case .publish: text(machine.receive(.publish))
        case .disconnect: text(machine.receive(.disconnect))
        case .connack: text(machine.receive(.connack))
        case .accepted: text(machine.authenticated(nil))
        case .refused: text(machine.authenticated(.notAuthorized))
        case .delayed: delay(&machine)
        case .endDelay: machine.endDelay() ? "resumed" : "ignore"
        case .opened: machine.opened() ? "opened" : "ignore"
        case .closed: close(&machine)
        }
    }

    private func delay(_ machine: inout ConnectionMachine) -> String {
        machine.delay()
        return "delayed"
    }

    private func close(_ machine: inout ConnectionMachine) -> String {
        machine.close()
        return "closed"
    }

    private func expectation(_ event: Event, in stage: Stage) -> (String, Stage) {
        switch (event, stage) {
        case (.closed, _): ("closed", .closed)
        case (_, .closed): ("ignore", .closed)
        case (.connect, .awaitingConnect): ("authenticate", .authenticating)
        case (.connectWithoutIdentifier, .awaitingConnect): ("refuse 2", .closed)
        // One network connection carries exactly one CONNECT [MQTT-3.1.0-2].
        case (.connect, _), (.connectWithoutIdentifier, _): ("close MQTT-3.1.0-2", .closed)
        case (.publish, .active): ("process", .active)
        case (.disconnect, .active): ("process", .closed)
        case (.connack, .active): ("close section 2.2.1", .closed)
        // The first packet is CONNECT, and nothing counts before it is accepted [MQTT-3.1.0-1].
        case (.publish, _), (.disconnect, _), (.connack, _): ("close MQTT-3.1.0-1", .closed)
        case (.accepted, .authenticating): ("open", .opening)
        case (.refused, .authenticating): ("refuse 5", .closed)
        case (.delayed, .opening): ("delayed", .delayed)
        case (.endDelay, .delayed): ("resumed", .opening)
        case (.opened, .opening): ("opened", .active)
        case (.accepted, _), (.refused, _), (.delayed, _), (.endDelay, _), (.opened, _):
            ("ignore", stage)
        }
    }

    private func text(_ answer: ConnectionMachine.OnConnect) -> String {
        switch answer {
        case .authenticate: "authenticate"
        case .refuse(let code): "refuse \(code.rawValue)"
        case .close(let violation): "close \(violation.statement)"
        case .ignore: "ignore"
        }
    }

    private func text(_ answer: ConnectionMachine.OnPacket) -> String {
        switch answer {
        case .process: "process"
        case .close(let violation): "close \(violation.statement)"
        case .ignore: "ignore"
        }
    }

    private func text(_ answer: ConnectionMachine.OnVerdict) -> String {
        switch answer {
        case .open: "open"
        case .refuse(let code): "refuse \(code.rawValue)"
        case .ignore: "ignore"
        }
    }

    @Test(
        "an active connection takes from a client what a client may send",
        arguments: PacketType.allCases)
    func packetTypes(type: PacketType) {
        var machine = ConnectionMachine()
        #expect(machine.receive(Self.clean, identifierCount: 1) == .authenticate)
        #expect(machine.authenticated(nil) == .open)
        let isOpen = machine.opened()
        #expect(isOpen)
        let answer = machine.receive(type)
        switch type {
        case .connect: #expect(answer == .close(.secondConnect))
        case .connack, .suback, .unsuback, .pingresp:
            #expect(answer == .close(.packetOnlyServersSend))
        case .publish, .puback, .pubrec, .pubrel, .pubcomp, .subscribe, .unsubscribe, .pingreq,
            .disconnect:
            #expect(answer == .process)
        }
        let staysOpen = answer == .process && type != .disconnect
        #expect(machine.isClosed == !staysOpen)
    }

    @Test("an empty client identifier needs a clean session of 3.1.1 [MQTT-3.1.3-8]")
    func emptyIdentifier() {
        for version in [Connect.Version.v3_1, .v3_1_1] {
            for cleanSession in [false, true] {
                for count in [0, 1] {
                    var machine = ConnectionMachine()
                    let connect = Connect(
                        version: version, cleanSession: cleanSession, keepAlive: 0,
                        clientIdentifier: ByteRange(offset: 0, count: count))
                    let isAllowed = count > 0 || (cleanSession && version == .v3_1_1)
                    #expect(
                        machine.receive(connect, identifierCount: count)
                            == (isAllowed ? .authenticate : .refuse(.identifierRejected)))
                    #expect(machine.isClosed == !isAllowed)
                }
            }
        }
    }

    @Test("a violation names its statement and explains itself")
    func statements() {
        #expect(ProtocolViolation.firstPacketNotConnect.statement == "MQTT-3.1.0-1")
        #expect(ProtocolViolation.secondConnect.statement == "MQTT-3.1.0-2")
        #expect(ProtocolViolation.malformed(.publishQoS).statement == "MQTT-3.3.1-4")
        #expect(ProtocolViolation.malformed(.publishQoS).explanation == "QoS 3")
    }
}
