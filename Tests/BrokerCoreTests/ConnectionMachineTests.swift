import HermesTesting
import MQTTCodec
import MQTTCore
import Structures
import Testing

@testable import BrokerCore
@testable import BrokerFeatures

/// An event in the life of a connection.
private enum Event: Hashable, CaseIterable {
    case connect, connectWithoutIdentifier, publish, disconnect, connack
    case awaitCheck, endCheck, delay, endDelay, attach, commit, commitLoading, loaded
    case throttle, unthrottle, end

    /// Events that occur only while a CONNECT is processed.
    var isOfOpening: Bool { [.awaitCheck, .delay, .attach].contains(self) }
}

/// The machine's states, as its docstring draws them.
private enum Stage: Hashable {
    case awaitingConnect, opening, authenticating, delayed, committing, loading, active, throttled
    case ending
}

@Suite("Connection machine")
struct ConnectionMachineTests {
    private static let clean = Connect(
        version: .v3_1_1, cleanSession: true, keepAlive: 0,
        clientID: ByteRange(offset: 0, count: 1))
    private static let persistent = Connect(
        version: .v3_1_1, cleanSession: false, keepAlive: 0,
        clientID: ByteRange(offset: 0, count: 0))
    private let pool = BytePool()

    @Test("every sequence of up to five events is answered as drawn")
    func allSequences() {
        var sequences = 0
        var failures: [String] = []
        func walk(_ machine: ConnectionMachine, _ stage: Stage, _ wasOpen: Bool, _ path: [Event]) {
            let isActive = stage == .active || stage == .throttled
            let holds: [Stage] = [.authenticating, .opening, .delayed, .committing, .loading]
            if machine.isAwaitingConnect != (stage == .awaitingConnect)
                || machine.holdsInput != holds.contains(stage)
                || machine.isDelayed != (stage == .delayed) || machine.isActive != isActive
                || machine.isOpen != (isActive || wasOpen)
                || machine.isNewcomer
                    != [.awaitingConnect, .authenticating, .delayed].contains(stage)
                || machine.isEnding != (stage == .ending)
            {
                failures.append("\(path): \(machine)")
            }
            sequences += 1
            guard path.count < 5 else { return }
            for event in Event.allCases where !event.isOfOpening || stage == .opening {
                // The end releases bytes, to which a copy of the machine holds no reference.
                let ownsBytes = stage == .authenticating || stage == .delayed
                var next = event == .end && ownsBytes ? replay(path) : machine
                let answer = apply(event, to: &next)
                let (expected, nextStage) = expectation(event, in: stage)
                if answer != expected { failures.append("\(path) then \(event): \(answer)") }
                walk(next, nextStage, nextStage == .ending && (wasOpen || isActive), path + [event])
            }
        }
        walk(ConnectionMachine(), .awaitingConnect, false, [])
        #expect(failures.isEmpty, "\(failures.prefix(10))")
        #expect(sequences > 300_000)
    }

    private func replay(_ path: [Event]) -> ConnectionMachine {
        var machine = ConnectionMachine()
        for event in path { _ = apply(event, to: &machine) }
        return machine
    }

    private var held: HeldConnect {
        [0x10, 0x00].withUnsafeBytes { HeldConnect($0, provenUser: nil, pool: pool) }
    }

    private func apply(_ event: Event, to machine: inout ConnectionMachine) -> String {
        switch event {
        case .connect: return text(machine.receive(Self.clean, identifierCount: 1))
        case .connectWithoutIdentifier:
            return text(machine.receive(Self.persistent, identifierCount: 0))
        case .publish: return text(machine.receive(.publish))
        case .disconnect: return text(machine.receive(.disconnect))
        case .connack: return text(machine.receive(.connack))
        case .awaitCheck: machine.awaitPasswordCheck(held)
        case .endCheck: return machine.endPasswordCheck() == nil ? "ignore" : "judge"
        case .delay: machine.delay(held)
        case .endDelay: return machine.endDelay() == nil ? "ignore" : "judge"
        case .attach: machine.attached(sessionPresent: true)
        case .commit: return machine.committed(isLoading: false) == nil ? "ignore" : "CONNACK"
        case .commitLoading:
            return machine.committed(isLoading: true) == nil ? "ignore" : "CONNACK"
        case .loaded: return machine.loaded() == nil ? "ignore" : "CONNACK"
        case .throttle: return machine.setThrottled(true) ? "changed" : "ignore"
        case .unthrottle: return machine.setThrottled(false) ? "changed" : "ignore"
        case .end: return machine.end(releasingIn: pool) ? "ends" : "ignore"
        }
        return "done"
    }

    private func expectation(_ event: Event, in stage: Stage) -> (String, Stage) {
        switch (event, stage) {
        case (.end, .ending), (_, .ending): ("ignore", .ending)
        case (.end, _): ("ends", .ending)
        case (.connect, .awaitingConnect): ("authenticate", .opening)
        case (.connectWithoutIdentifier, .awaitingConnect): ("refuse 2", .awaitingConnect)
        // One network connection carries exactly one CONNECT [MQTT-3.1.0-2].
        case (.connect, _), (.connectWithoutIdentifier, _): ("close MQTT-3.1.0-2", stage)
        case (.publish, .active), (.publish, .throttled): ("process", stage)
        case (.disconnect, .active), (.disconnect, .throttled): ("process", stage)
        case (.connack, .active), (.connack, .throttled): ("close section 2.2.1", stage)
        // The first packet is CONNECT, and nothing is processed before it is accepted
        // [MQTT-3.1.0-1].
        case (.publish, _), (.disconnect, _), (.connack, _): ("close MQTT-3.1.0-1", stage)
        case (.awaitCheck, _): ("done", .authenticating)
        case (.delay, _): ("done", .delayed)
        case (.attach, _): ("done", .committing)
        case (.endCheck, .authenticating), (.endDelay, .delayed): ("judge", .opening)
        case (.commit, .committing): ("CONNACK", .active)
        case (.commitLoading, .committing): ("ignore", .loading)
        case (.loaded, .loading): ("CONNACK", .active)
        case (.throttle, .active): ("changed", .throttled)
        case (.unthrottle, .throttled): ("changed", .active)
        case (.endCheck, _), (.endDelay, _), (.commit, _), (.commitLoading, _), (.loaded, _),
            (.throttle, _), (.unthrottle, _):
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

    @Test(
        "an active connection accepts exactly the packets that clients send",
        arguments: PacketType.allCases)
    func packetTypes(type: PacketType) {
        var machine = ConnectionMachine()
        #expect(text(machine.receive(Self.clean, identifierCount: 1)) == "authenticate")
        machine.attached(sessionPresent: false)
        #expect(machine.committed(isLoading: false) == false)
        let answer = machine.receive(type)
        switch type {
        case .connect: #expect(answer == .close(.secondConnect))
        case .connack, .suback, .unsuback, .pingresp:
            #expect(answer == .close(.packetOnlyServersSend))
        case .publish, .puback, .pubrec, .pubrel, .pubcomp, .subscribe, .unsubscribe, .pingreq,
            .disconnect:
            #expect(answer == .process)
        }
    }

    @Test("an empty client identifier needs a clean session of 3.1.1 [MQTT-3.1.3-8]")
    func emptyIdentifier() {
        for version in [Connect.Version.v3_1, .v3_1_1] {
            for cleanSession in [false, true] {
                for count in [0, 1] {
                    var machine = ConnectionMachine()
                    let connect = Connect(
                        version: version, cleanSession: cleanSession, keepAlive: 0,
                        clientID: ByteRange(offset: 0, count: count))
                    let isAllowed = count > 0 || (cleanSession && version == .v3_1_1)
                    #expect(
                        text(machine.receive(connect, identifierCount: count))
                            == (isAllowed ? "authenticate" : "refuse 2"))
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
