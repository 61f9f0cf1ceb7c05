import BrokerAPI
import BrokerTesting
import HermesTesting
import MQTTCodec
import Structures

@testable import HermesClientCore

/// Phones and a broker on one clock, joined by byte streams with faults; runs one history.
final class World {
    /// One transport connection, with what is under way on it.
    struct Link {
        let phone: Int
        let life: Int
        let number: ConnectionNumber
        /// The connection at the broker; `nil` before it is open and after the broker knows its end.
        var handle: Handle?
        var isOpenAtPhone = true
        /// Nothing passes any more.
        var isDead = false
        var lastTraffic: Int64 = 0
        var up: [[UInt8]] = []
        var down: [[UInt8]] = []
        /// Bytes do not overtake each other.
        var upUntil: Int64 = 0
        var downUntil: Int64 = 0
    }

    enum Due {
        case incident(Int)
        case opens(Int)
        case cut(Int)
        case arrivesUp(Int)
        case arrivesDown(Int)
        case brokerHearsEnd(Int)
        case phoneHearsEnd(Int, DropReason)
        case deadline(Int)
        case acknowledge(Int, life: Int, Phone.Held)
        case commit
        case brokerTick
        case brokerStarts
    }

    let history: History
    var random: SplitMix64
    var now: Int64 = 0
    var schedule = Schedule<Due>()
    var phones: [Phone]
    var links: [Link] = []
    var broker: SimulatedBroker?
    var ledger: Ledger
    private var linksByHandle: [Handle: Int] = [:]
    private var stored = StoreModel()
    private var diskMilliseconds: Int64 = 5
    private var isCommitting = false
    private var forgetsAfter: [Int64?]
    private var cutWritesPercent: Int
    private var nextMessage = 1
    /// Publishes of the operator that are not answered.
    private var unanswered: [(number: Int, Publication, Answers<PublishOutcome>)] = []

    init(_ history: History) {
        self.history = history
        var random = SplitMix64(seed: history.seed ^ 0x5EED)
        phones = (0..<history.phones).map { Phone($0, history.heartbeat, seed: random.next()) }
        self.random = random
        ledger = Ledger(phones: history.phones)
        forgetsAfter = history.forgetsAfter
        cutWritesPercent = history.cutWritesPercent
        startBroker()
    }

    var unixMilliseconds: Int64 { 1_800_000_000_000 + now }

    var moment: Moment {
        Moment(monotonicMilliseconds: now, unixMilliseconds: unixMilliseconds)
    }

    // MARK: The run

    func run() throws {
        try begin()
        try pass(until: history.milliseconds)
        clearWeather()
        try settle()
        // A last message of each channel shows the holes before it, which are told 5 s later.
        for channel in 0..<History.channels { operatorPublishes(channel, qos: 1) }
        try settle()
        try pass(until: now + 10_000)
        try ledger.check()
        for phone in phones.indices {
            // A session that was lost together with the CONNACK of the next one leaves some.
            let received = phones[phone].machine.stored.received
            guard received.isEmpty || ledger.lostSessions.contains(phone) else {
                throw Ledger.Failure(description: "phone \(phone) waits for PUBREL: \(received)")
            }
            ledger.count { $0.toldApart += Int(phones[phone].machine.counters.duplicates) }
        }
    }

    func begin() throws {
        for (index, incident) in history.incidents.enumerated() {
            schedule.add(.incident(index), at: incident.at)
        }
        schedule.add(.brokerTick, at: 1_000)
        for phone in phones.indices { try begin(phone) }
    }

    /// What a program does at its start.
    private func begin(_ phone: Int) throws {
        for filter in Phone.filters {
            try call(phone) { machine, moment in
                try? machine.subscribe(Array(filter.utf8), qos: .exactlyOnce, at: moment)
            }
        }
        try call(phone) { $0.start(at: $1) }
    }

    func pass(until end: Int64) throws {
        while let due = schedule.next(until: end) {
            now = due.at
            broker?.advance(to: now, unixMilliseconds: unixMilliseconds)
            try handle(due.value)
            try pumpBroker()
        }
        now = end
        broker?.advance(to: now, unixMilliseconds: unixMilliseconds)
    }

    private func clearWeather() {
        forgetsAfter = forgetsAfter.map { _ in nil }
        cutWritesPercent = 0
        diskMilliseconds = 5
        for phone in phones.indices {
            phones[phone].killAfter = nil
            phones[phone].latency = 50
            phones[phone].appMilliseconds = 10
            phones[phone].hasNetwork = true
        }
    }

    private func settle() throws {
        for _ in 0..<400 {
            for phone in phones.indices {
                try call(phone) { $0.start(at: $1) }
                if phones[phone].isSuspended { try call(phone) { $0.enteredForeground(at: $1) } }
            }
            try pass(until: now + 5_000)
            if phones.allSatisfy(\.isIdle), broker?.isDrained == true, unanswered.isEmpty { return }
        }
        let open = phones.filter { !$0.isIdle }.map {
            "\($0.identifier): \($0.machine.phase), \($0.held.count) held, "
                + "\($0.machine.stored.outbox.messages.count) in the outbox"
        }
        throw Ledger.Failure(
            description: "nothing is left to come, but it does not end: \(open), broker drained: "
                + "\(broker?.isDrained == true), \(unanswered.count) publishes open")
    }

    private func handle(_ due: Due) throws {
        switch due {
        case .incident(let index): try happen(history.incidents[index].kind)
        case .opens(let link): try opens(link)
        case .cut(let link): if links[link].isOpenAtPhone { try cut(link) }
        case .arrivesUp(let link):
            guard !links[link].up.isEmpty else { return }
            let bytes = links[link].up.removeFirst()
            if let handle = links[link].handle { broker?.receive(handle, bytes) }
        case .arrivesDown(let link):
            guard !links[link].down.isEmpty else { return }
            try hand(links[link].down.removeFirst(), to: link)
        case .brokerHearsEnd(let link): endAtBroker(link)
        case .phoneHearsEnd(let link, let reason): try endAtPhone(link, reason)
        case .deadline(let phone):
            phones[phone].wakesAt = nil
            try call(phone) { $0.timeReached(at: $1) }
        case .acknowledge(let phone, let life, let held): try acknowledge(phone, life, held)
        case .commit: commit()
        case .brokerTick:
            broker?.turn()
            schedule.add(.brokerTick, at: now + 1_000)
        case .brokerStarts: startBroker()
        }
    }

    // MARK: Incidents

    private func happen(_ kind: History.Kind) throws {
        switch kind {
        case .operatorPublishes(let channel, let qos, let count):
            for _ in 0..<count { operatorPublishes(channel, qos: qos) }
        case .phonePublishes(let phone, let qos, let count, let isNamed):
            for _ in 0..<count { try phonePublishes(phone, qos, isNamed) }
        case .cut(let phone): if let link = phones[phone].link { try cut(link) }
        case .halfOpen(let phone):
            if let link = phones[phone].link { kill(link) }
        case .goneAtBroker(let phone):
            guard let link = phones[phone].link else { return }
            kill(link)
            endAtBroker(link)
        case .goneAtPhone(let phone):
            guard let link = phones[phone].link else { return }
            kill(link)
            try endAtPhone(link, .networkFailure)
        case .latency(let phone, let milliseconds): phones[phone].latency = milliseconds
        case .moves(let phone, let network):
            phones[phone].hasNetwork = network != nil
            if let link = phones[phone].link { kill(link) }
            try call(phone) { $0.networkChanged(to: network.map { [$0] }, at: $1) }
        case .appKilled(let phone, let actions):
            if phones[phone].killAfter == nil { phones[phone].killAfter = actions }
        case .brokerKilled(let groups): killBroker(groups)
        case .diskTakes(let milliseconds): diskMilliseconds = milliseconds
        case .sessionEnds(let phone):
            guard let broker else { return }
            try broker.endSession(phones[phone].identifier)
            ledger.sessionEnded(phone, lastSession: broker.lastSession)
        case .background(let phone): try call(phone) { $0.enteredBackground(at: $1) }
        case .foreground(let phone): try call(phone) { $0.enteredForeground(at: $1) }
        case .wakes(let phone): try call(phone) { $0.wokenByPush(at: $1) }
        case .stops(let phone): try call(phone) { $0.stop(at: $1) }
        case .starts(let phone): try call(phone) { $0.start(at: $1) }
        case .appTakes(let phone, let milliseconds): phones[phone].appMilliseconds = milliseconds
        }
    }

    private func operatorPublishes(_ channel: Int, qos: UInt8) {
        let topic = "o/\(channel)"
        let number = nextMessage
        nextMessage += 1
        let payload = SimulatedMessage(number: number, channel: Array(topic.utf8)).payload
        var publication = Publication(
            topic: Array(topic.utf8), payload: payload, qos: qos == 1 ? .atLeastOnce : .exactlyOnce,
            sequence: SequenceStamp(
                channel: Array(topic.utf8), tag: SimulatedMessage.sequenceTag),
            identity: PublishIdentity(
                key: UInt128(number), digest: UInt128(number), messageID: UInt128(number),
                isExplicit: true))
        if topic == Ledger.Message.replacingTopic { publication.collapseKey = 1 }
        ledger.published(number, Ledger.Message(topic: topic, qos: qos, hasFacts: true))
        let answers = Answers<PublishOutcome>()
        unanswered.append((number, publication, answers))
        broker?.publish(publication, answers.reply)
    }

    private func phonePublishes(_ phone: Int, _ qos: UInt8, _ isNamed: Bool) throws {
        let topic = "p/\(phone)"
        let number = nextMessage
        nextMessage += 1
        let message = SimulatedMessage(number: number, name: isNamed ? Array("\(number)".utf8) : [])
        ledger.published(
            number, Ledger.Message(topic: topic, qos: qos, hasFacts: isNamed, phone: phone))
        let life = phones[phone].life
        var isAccepted = false
        try call(phone) { machine, moment in
            let key = try? machine.publish(
                topic: Array(topic.utf8), payload: message.payload,
                qos: QoS(rawValue: qos) ?? .atMostOnce, at: moment)
            isAccepted = key != nil
        }
        // A program that was killed meanwhile has told the app nothing.
        if isAccepted, phones[phone].life == life { ledger.accepted(number) }
    }

    // MARK: The broker

    private func startBroker() {
        let started = SimulatedBroker(stored, at: now, unixMilliseconds: unixMilliseconds)
        broker = started
        isCommitting = false
        noteSessions(ofRestart: true)
        for (_, publication, answers) in unanswered { started.publish(publication, answers.reply) }
    }

    private func killBroker(_ groups: Int) {
        guard let broker else { return }
        ledger.count { $0.brokerKills += 1 }
        stored = broker.killed(committing: groups)
        self.broker = nil
        linksByHandle = [:]
        for link in links.indices where links[link].handle != nil {
            links[link].handle = nil
            guard !links[link].isDead, links[link].isOpenAtPhone else { continue }
            let at = max(links[link].downUntil, now + latency(link))
            schedule.add(.phoneHearsEnd(link, .networkFailure), at: at)
        }
        schedule.add(.brokerStarts, at: now + Int64(random.number(in: 100...20_000)))
    }

    private func commit() {
        isCommitting = false
        broker?.commit(random.number(in: 1...50))
        noteSessions()
    }

    /// Notes which phones get all messages from now on; after a restart the broker may have a session
    /// whose end it had not stored.
    private func noteSessions(ofRestart isRestart: Bool = false) {
        for phone in phones.indices {
            guard let below = ledger.receivers[phone].missesBelow,
                let session = broker?.session(
                    of: phones[phone].identifier, with: Phone.filters),
                session > below || isRestart
            else { continue }
            ledger.sessionBegan(phone)
        }
    }

    private func pumpBroker() throws {
        guard let broker else { return }
        if broker.hasPendingWrites, !isCommitting {
            isCommitting = true
            schedule.add(.commit, at: now + diskMilliseconds)
        }
        let output = broker.takeOutput()
        for (handle, bytes) in output.sent {
            guard let link = linksByHandle[handle], passes(link) else { continue }
            // In two parts, which a fault may come between.
            let first = random.number(in: 0...bytes.count)
            for part in [bytes[..<first], bytes[first...]] where !part.isEmpty {
                links[link].down.append(Array(part))
                links[link].downUntil = max(links[link].downUntil, now + latency(link))
                schedule.add(.arrivesDown(link), at: links[link].downUntil)
            }
        }
        for handle in output.closed {
            guard let link = linksByHandle.removeValue(forKey: handle) else { continue }
            links[link].handle = nil
            if links[link].isDead { continue }
            links[link].downUntil = max(links[link].downUntil, now + latency(link))
            schedule.add(.phoneHearsEnd(link, .closedByPeer), at: links[link].downUntil)
        }
        unanswered.removeAll { number, _, answers in
            guard answers.last != nil else { return false }
            ledger.accepted(number)
            return true
        }
    }

    // MARK: The network

    private func latency(_ link: Int) -> Int64 {
        let most = phones[links[link].phone].latency
        return Int64(random.number(in: Int(most / 2)...Int(most)))
    }

    /// True if bytes that leave now will arrive; a NAT may have forgotten the connection.
    private func passes(_ link: Int) -> Bool {
        if let limit = forgetsAfter[links[link].phone], now - links[link].lastTraffic > limit {
            kill(link)
        }
        links[link].lastTraffic = now
        return !links[link].isDead
    }

    /// Nothing more arrives on the connection, not even what is under way.
    private func kill(_ link: Int) {
        links[link].isDead = true
        (links[link].up, links[link].down) = ([], [])
    }

    private func opens(_ link: Int) throws {
        let phone = links[link].phone
        guard links[link].isOpenAtPhone, !links[link].isDead else { return }
        guard phones[phone].hasNetwork, let broker else {
            try endAtPhone(link, .networkFailure)
            return
        }
        let handle = broker.open()
        linksByHandle[handle] = link
        links[link].handle = handle
        links[link].lastTraffic = now
        ledger.count { $0.connections += 1 }
        let number = links[link].number
        try call(phone) { $0.transportOpened(number, at: $1) }
    }

    private func cut(_ link: Int) throws {
        ledger.count { $0.cuts += 1 }
        let up = links[link].up.joined()
        let down = links[link].down.joined()
        let partUp = Array(up.prefix(random.number(in: 0...up.count)))
        let partDown = Array(down.prefix(random.number(in: 0...down.count)))
        kill(link)
        if let handle = links[link].handle, !partUp.isEmpty { broker?.receive(handle, partUp) }
        schedule.add(.brokerHearsEnd(link), at: now + Int64(random.number(in: 0...2_000)))
        let reason: DropReason = random.pick([.networkFailure, .closedByPeer, .writeFailed])
        schedule.add(.phoneHearsEnd(link, reason), at: now + Int64(random.number(in: 0...2_000)))
        if !partDown.isEmpty { try hand(partDown, to: link) }
    }

    private func hand(_ bytes: [UInt8], to link: Int) throws {
        guard links[link].isOpenAtPhone else { return }
        let number = links[link].number
        try call(links[link].phone) { $0.received(bytes, on: number, at: $1) }
    }

    private func endAtBroker(_ link: Int) {
        guard let handle = links[link].handle else { return }
        links[link].handle = nil
        linksByHandle[handle] = nil
        broker?.lost(handle)
    }

    private func endAtPhone(_ link: Int, _ reason: DropReason) throws {
        guard links[link].isOpenAtPhone else { return }
        closeAtPhone(link)
        let number = links[link].number
        try call(links[link].phone) { $0.transportClosed(number, reason, at: $1) }
    }

    /// The phone's side is closed: what it has written still arrives, and then the end.
    private func closeAtPhone(_ link: Int) {
        guard links[link].isOpenAtPhone else { return }
        links[link].isOpenAtPhone = false
        if phones[links[link].phone].link == link { phones[links[link].phone].link = nil }
        guard !links[link].isDead else { return }
        let at = max(links[link].upUntil, now + latency(link))
        schedule.add(.brokerHearsEnd(link), at: at)
    }

    // MARK: The program

    /// Calls a machine and does its actions, up to a kill.
    private func call(_ phone: Int, _ event: (inout ClientMachine, Moment) -> Void) throws {
        event(&phones[phone].machine, moment)
        let actions = phones[phone].machine.takeActions()
        for action in actions {
            if let left = phones[phone].killAfter {
                if left == 0 {
                    for case .event(.loss(let channel, let lost)) in actions {
                        ledger.killed(after: channel, lost, phone: phone)
                    }
                    try kill(phone, during: action)
                    return
                }
                phones[phone].killAfter = left - 1
            }
            try perform(action, of: phone)
        }
        try takeMessages(phone)
        if let deadline = phones[phone].machine.nextDeadline,
            deadline < phones[phone].wakesAt ?? .max
        {
            phones[phone].wakesAt = deadline
            schedule.add(.deadline(phone), at: max(now, deadline))
        }
    }

    private func perform(_ action: ClientAction, of phone: Int) throws {
        switch action {
        case .open(let number):
            let link = links.count
            links.append(Link(phone: phone, life: phones[phone].life, number: number))
            phones[phone].link = link
            schedule.add(.opens(link), at: now + 2 * latency(link))
        case .write(let number, let bytes):
            guard let link = phones[phone].link, links[link].number == number, passes(link) else {
                return
            }
            links[link].up.append(bytes)
            links[link].upUntil = max(links[link].upUntil, now + latency(link))
            schedule.add(.arrivesUp(link), at: links[link].upUntil)
            ledger.count { $0.writes += 1 }
            if random.number(in: 0...99) < cutWritesPercent {
                ledger.count { $0.writesCut += 1 }
                schedule.add(.cut(link), at: now)
            }
        case .close(let number):
            if let link = phones[phone].link, links[link].number == number { closeAtPhone(link) }
        case .store(let frame): phones[phone].store(frame)
        case .replaceLog(let file): phones[phone].replaceLog(file)
        case .event(.loss(let channel, let lost)): try ledger.told(channel, lost, to: phone)
        case .state, .event, .requestCredentials, .published, .subscriptionAnswered, .reportDue:
            break
        }
    }

    /// The program dies in the midst of an action, and begins again with its log.
    private func kill(_ phone: Int, during action: ClientAction) throws {
        ledger.count { $0.appKills += 1 }
        switch action {
        case .store(let frame):
            phones[phone].store(Array(frame.prefix(random.number(in: 0...frame.count))))
        case .write(let number, let bytes):
            let part = Array(bytes.prefix(random.number(in: 0...bytes.count)))
            if !part.isEmpty { try perform(.write(number, part), of: phone) }
        case .replaceLog(let file): if random.once(in: 2) { phones[phone].replaceLog(file) }
        default: break
        }
        if let link = phones[phone].link { closeAtPhone(link) }
        try phones[phone].restart(seed: random.next())
        try begin(phone)
    }

    private func takeMessages(_ phone: Int) throws {
        let life = phones[phone].life
        while let inbound = phones[phone].machine.takeMessage() {
            guard let message = SimulatedMessage(inbound.payload) else {
                throw Ledger.Failure(description: "\(inbound.payload) is no message")
            }
            try ledger.came(message, to: phone, life: life)
            guard inbound.qos != .atMostOnce else { continue }
            let held = Phone.Held(number: inbound.number, message: message)
            phones[phone].held.append(held)
            let span = Int64(random.number(in: 0...Int(phones[phone].appMilliseconds)))
            schedule.add(.acknowledge(phone, life: life, held), at: now + span)
        }
    }

    private func acknowledge(_ phone: Int, _ life: Int, _ held: Phone.Held) throws {
        guard phones[phone].life == life else { return }
        phones[phone].held.removeAll { $0.number == held.number }
        try call(phone) { $0.acknowledge(held.number, at: $1) }
        if phones[phone].life == life { ledger.acknowledged(held.message, by: phone) }
    }
}
