import MQTTCodec

@testable import HermesClientCore

/// A broker with one client, written for the simulation: sessions, both directions of QoS 1 and 2,
/// a window of 20, subscriptions. It keeps to the rules and never forgets but when it is told to.
struct ScriptedBroker {
    private struct Outbound {
        var identifier: UInt16
        var payload: [UInt8]
        var qos: UInt8
        /// Sent on some connection before.
        var wasSent = false
        var isReleased = false
    }

    private var hasSession = false
    private var queue: [Outbound] = []
    private var sent = 0
    private var nextIdentifier: UInt16 = 0
    /// Identifiers of QoS 2 from the client whose PUBREL has not come.
    private var received: Set<UInt16> = []
    private(set) var subscriptions: Set<String> = []
    private var isConnected = false
    /// The payloads that the client has published, in order.
    private(set) var published: [[UInt8]] = []

    mutating func publish(_ payload: [UInt8], qos: UInt8) {
        nextIdentifier = nextIdentifier % 65_535 + 1
        queue.append(Outbound(identifier: nextIdentifier, payload: payload, qos: qos))
    }

    mutating func connectionEnded() { isConnected = false }

    mutating func loseSession() {
        hasSession = false
        received = []
        subscriptions = []
        for index in queue.indices { queue[index].wasSent = false }
        // What the client may have is not this test's matter: a broker that loses its sessions
        // loses their queues as well.
        queue = []
    }

    var isIdle: Bool { queue.isEmpty }

    /// The answers to a packet.
    mutating func receive(_ packet: Sent) -> [UInt8] {
        var output: [UInt8] = []
        switch packet {
        case .connect:
            output += Packets.connack(sessionPresent: hasSession)
            hasSession = true
            isConnected = true
            sent = 0
        case .publish(let payload, let qos, let identifier, _):
            if qos == 2 {
                if received.insert(identifier).inserted { published.append(payload) }
                output += Packets.pubrec(identifier)
            } else {
                published.append(payload)
                if qos == 1 { output += Packets.puback(identifier) }
            }
        case .puback(let identifier): finish(identifier)
        case .pubrec(let identifier):
            if let index = queue.firstIndex(where: { $0.identifier == identifier }) {
                queue[index].isReleased = true
            }
            output += Packets.pubrel(identifier)
        case .pubrel(let identifier):
            received.remove(identifier)
            output += Packets.pubcomp(identifier)
        case .pubcomp(let identifier): finish(identifier)
        case .subscribe(let identifier, let filters):
            subscriptions.formUnion(filters)
            output += Packets.suback(identifier, filters.map { _ in 2 })
        case .unsubscribe(let identifier, let filters):
            subscriptions.subtract(filters)
            output += Packets.unsuback(identifier)
        case .pingreq: output += Packets.pingresp
        case .disconnect, .wrong: break
        }
        return output
    }

    /// The next messages that the window has room for.
    mutating func pump() -> [UInt8] {
        guard isConnected else { return [] }
        var output: [UInt8] = []
        while sent < min(20, queue.count) {
            let message = queue[sent]
            output +=
                message.isReleased
                ? Packets.pubrel(message.identifier)
                : Packets.publish(
                    message.payload, qos: message.qos, identifier: message.identifier,
                    isDuplicate: message.wasSent)
            queue[sent].wasSent = true
            sent += 1
        }
        return output
    }

    private mutating func finish(_ identifier: UInt16) {
        guard let index = queue.firstIndex(where: { $0.identifier == identifier }) else { return }
        queue.remove(at: index)
        if index < sent { sent -= 1 }
    }
}

/// One history: a client and a broker on one clock, joined by two byte streams that are cut at any
/// byte; the client's program is killed between any two of its actions and at any byte of a write
/// to its log.
struct Simulation {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    let seed: UInt64
    var random: SplitMix64
    var client: ClientMachine
    var broker = ScriptedBroker()
    var log: [UInt8] = []
    var now: Int64 = 0
    /// The connection of the client's that the network knows.
    private var connection: ConnectionNumber?
    private var isOpening = false
    private var toBroker: [UInt8] = []
    private var toClient: [UInt8] = []
    /// Messages that the app has and has not acknowledged, in this life of the program.
    private var held: [InboundMessage] = []
    /// Payloads by the number of times that the app got them.
    var got: [[UInt8]: Int] = [:]
    /// Payloads that the app has acknowledged, and whose acknowledgement is stored.
    private var acknowledged: Set<[UInt8]> = []
    /// What the client has accepted for publishing, with its QoS.
    var accepted: [[UInt8]: UInt8] = [:]
    var sentByBroker: [[UInt8]: UInt8] = [:]
    var lostSession = false
    private(set) var kills = 0
    private(set) var cuts = 0
    private var sequences: [Int: UInt64] = [:]
    private var messages = 0
    /// A kill comes after so many more actions of the client; `nil` for none.
    private var killAfter: Int?

    init(seed: UInt64) {
        self.seed = seed
        random = SplitMix64(seed: seed)
        client = Simulation.program(StoredState(), 0, seed)
    }

    private static func program(
        _ state: StoredState, _ logBytes: Int, _ seed: UInt64
    ) -> ClientMachine {
        ClientMachine(
            settings: .phone, stored: state, logBytes: logBytes, random: SeededRandom(seed: seed))
    }

    var moment: Moment {
        Moment(monotonicMilliseconds: now, unixMilliseconds: 1_800_000_000_000 + now)
    }

    // MARK: Steps

    mutating func run(steps: Int) throws {
        try start()
        for _ in 0..<steps { try step() }
        try settle()
    }

    private mutating func start() throws {
        try call { $0.start(at: $1) }
        try call { machine, moment in
            try? machine.subscribe(Array("t".utf8), qos: .exactlyOnce, at: moment)
        }
    }

    private mutating func step() throws {
        switch random.number(in: 0...99) {
        case 0..<15: brokerPublishes()
        case 15..<27: try appPublishes()
        case 27..<55: try move(all: false)
        case 55..<70: try appWorks(all: false)
        case 70..<78: try pass(Int64(random.number(in: 1...3_000)))
        case 78..<82: try pass(Int64(random.number(in: 1...200_000)))
        case 82..<86: try cut(random.once(in: 3) ? .writeFailed : .closedByPeer)
        case 86..<88: if killAfter == nil { killAfter = random.number(in: 0...6) }
        case 88: try call { $0.enteredBackground(at: $1) }
        case 89: try call { $0.enteredForeground(at: $1) }
        case 90: try call { $0.networkChanged(to: [1], at: $1) }
        case 91: try call { $0.wokenByPush(at: $1) }
        case 92 where random.once(in: 8) && broker.isIdle: loseSession()
        case 93: try call { $0.stop(at: $1) }
        case 94: try call { $0.start(at: $1) }
        default: try move(all: true)
        }
    }

    /// Ends all faults and lets everything arrive.
    private mutating func settle() throws {
        killAfter = nil
        for _ in 0..<2_000 {
            try call { $0.start(at: $1) }
            if case .suspended = client.phase { try call { $0.enteredForeground(at: $1) } }
            try move(all: true)
            try appWorks(all: true)
            let isDone =
                broker.isIdle && client.stored.outbox.count == 0
                && held.isEmpty && toClient.isEmpty && toBroker.isEmpty
                && client.stored.subscriptions.all.allSatisfy { $0.state.isGranted }
            if isDone { return }
            try pass(5_000)
        }
        throw failure("nothing is left to come, but it does not end")
    }

    private mutating func loseSession() {
        broker.loseSession()
        lostSession = true
        connectionGone()
        let number = connection
        connection = nil
        if let number { try? call { $0.transportClosed(number, .closedByPeer, at: $1) } }
    }

    private mutating func brokerPublishes() {
        messages += 1
        let qos = UInt8(random.number(in: 1...2))
        let payload: [UInt8]
        if random.once(in: 2) {
            let channel = random.number(in: 0...2)
            sequences[channel, default: 0] += 1
            payload = Array("c\(channel)/\(sequences[channel] ?? 0)".utf8)
        } else {
            payload = Array("plain \(messages)".utf8)
        }
        sentByBroker[payload] = qos
        broker.publish(payload, qos: qos)
    }

    private mutating func appPublishes() throws {
        messages += 1
        let payload = Array("mine \(messages)".utf8)
        let qos = UInt8(random.number(in: 1...2))
        let lives = kills
        var key: UInt64?
        try call { machine, moment in
            key = try? machine.publish(
                topic: Array("t".utf8), payload: payload,
                qos: qos == 1 ? .atLeastOnce : .exactlyOnce, at: moment)
        }
        // A program that was killed meanwhile has told the app nothing.
        if key != nil, kills == lives { accepted[payload] = qos }
    }

    /// Takes messages and acknowledges some of those that the app holds, in any order.
    private mutating func appWorks(all: Bool) throws {
        while let message = client.takeMessage() {
            let count = got[message.payload, default: 0] + 1
            got[message.payload] = count
            if acknowledged.contains(message.payload), neverTwice(message.payload) {
                throw failure("\(String(decoding: message.payload, as: UTF8.self)) came again")
            }
            if count > kills + 1, neverTwice(message.payload) {
                throw failure(
                    "\(String(decoding: message.payload, as: UTF8.self)) came \(count) times")
            }
            held.append(message)
        }
        while !held.isEmpty, all || random.once(in: 2) {
            let message = held.remove(at: random.number(in: 0...min(3, held.count - 1)))
            let lives = kills
            try call { $0.acknowledge(message.number, at: $1) }
            if kills == lives { acknowledged.insert(message.payload) }
        }
    }

    /// A session that was lost brings messages of QoS 2 again without anybody's fault.
    private func neverTwice(_ payload: [UInt8]) -> Bool {
        sentByBroker[payload] == 2 || TestPayload(payload) != nil
    }

    // MARK: Network

    private mutating func move(all: Bool) throws {
        if isOpening, let connection {
            isOpening = false
            try call { $0.transportOpened(connection, at: $1) }
        }
        repeat {
            let upwards = all ? toBroker.count : random.number(in: 0...toBroker.count)
            arriveAtBroker(upwards)
            toClient += broker.pump()
            let downwards = all ? toClient.count : random.number(in: 0...toClient.count)
            let part = Array(toClient.prefix(downwards))
            toClient.removeFirst(downwards)
            if let connection, !part.isEmpty {
                try call { $0.received(part, on: connection, at: $1) }
            }
        } while all && !(toBroker.isEmpty && toClient.isEmpty)
    }

    private var brokerInput: [UInt8] = []

    private mutating func arriveAtBroker(_ count: Int) {
        brokerInput += toBroker.prefix(count)
        toBroker.removeFirst(count)
        var offset = 0
        var packets: [Sent] = []
        brokerInput.withUnsafeBytes { content in
            while case .frame(let frame) = try? PacketDecoder.frame(
                content.bytes, at: offset, maximumSize: .max)
            {
                packets += Sent.all(in: Array(content[frame.packet]))
                offset = frame.packet.end
            }
        }
        brokerInput.removeFirst(offset)
        for packet in packets { toClient += broker.receive(packet) }
    }

    private mutating func connectionGone() {
        broker.connectionEnded()
        (toBroker, toClient, brokerInput) = ([], [], [])
        isOpening = false
    }

    private mutating func cut(_ reason: DropReason) throws {
        guard let number = connection else { return }
        cuts += 1
        // Some of what was on its way still arrives at the broker.
        if !isOpening { arriveAtBroker(random.number(in: 0...toBroker.count)) }
        connection = nil
        connectionGone()
        try call { $0.transportClosed(number, reason, at: $1) }
    }

    private mutating func pass(_ milliseconds: Int64) throws {
        let end = now + milliseconds
        while let deadline = client.nextDeadline, deadline <= end {
            now = max(now, deadline)
            try call { $0.timeReached(at: $1) }
            // The other side is quick; a cut is made on purpose only.
            try move(all: true)
        }
        now = end
    }

    // MARK: The program

    /// Calls the machine and does its actions, up to a kill.
    private mutating func call(_ event: (inout ClientMachine, Moment) -> Void) throws {
        event(&client, moment)
        for action in client.takeActions() {
            if let left = killAfter {
                if left == 0 {
                    try kill(during: action)
                    return
                }
                killAfter = left - 1
            }
            perform(action)
        }
    }

    private mutating func perform(_ action: ClientAction) {
        switch action {
        case .open(let number):
            connectionGone()
            (connection, isOpening) = (number, true)
        case .write(let number, let bytes): if number == connection { toBroker += bytes }
        case .close(let number):
            guard number == connection else { return }
            arriveAtBroker(toBroker.count)
            connection = nil
            connectionGone()
        case .store(let frame): log = (log.isEmpty ? ClientLog.header : log) + frame
        case .replaceLog(let file): log = file
        case .state, .event, .requestCredentials, .published, .subscriptionAnswered, .reportDue:
            break
        }
    }

    /// The program dies in the midst of an action, and begins again with its log.
    private mutating func kill(during action: ClientAction) throws {
        kills += 1
        killAfter = nil
        switch action {
        case .store(let frame):
            let whole = (log.isEmpty ? ClientLog.header : []) + frame
            log += whole.prefix(random.number(in: 0...whole.count))
        case .write(connection, let bytes):
            toBroker += bytes.prefix(random.number(in: 0...bytes.count))
        default: break
        }
        if connection != nil, !isOpening {
            arriveAtBroker(random.number(in: 0...toBroker.count))
        }
        connection = nil
        connectionGone()
        held = []
        let recovery = try ClientLog.recover(log)
        log = Array(log.prefix(recovery.soundBytes))
        client = Self.program(recovery.state, recovery.soundBytes, random.next())
        try call { $0.start(at: $1) }
        try call { machine, moment in
            try? machine.subscribe(Array("t".utf8), qos: .exactlyOnce, at: moment)
        }
    }

    func failure(_ text: String) -> Failure {
        Failure(description: "\(text); seed \(seed), \(kills) kills, \(cuts) cuts")
    }
}
