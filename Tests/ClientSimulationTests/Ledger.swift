/// What was published and what came to each app, and the rules for both.
struct Ledger {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    struct Message {
        var topic: String
        var qos: UInt8
        var hasFacts: Bool
        /// The phone that published it; `nil` for the operator.
        var phone: Int?
        /// The publisher knows that it is on its way: it must come.
        var isAccepted = false
    }

    /// What came to one app.
    struct Receiver {
        /// The times that each message came.
        var got: [Int: Int] = [:]
        /// The life of the program in which each message came last.
        var life: [Int: Int] = [:]
        var acknowledged: Set<Int> = []
        var sequences: [[UInt8]: Set<UInt64>] = [:]
        /// Messages that the app has acknowledged.
        var acknowledgedSequences: [[UInt8]: Set<UInt64>] = [:]
        var superseded: [[UInt8]: Set<UInt64>] = [:]
        var told: [[UInt8]: Set<UInt64>] = [:]
        /// The program was killed before it was stored that the app was told.
        var mayTellAgain: [[UInt8]: Set<UInt64>] = [:]
        /// Messages that a lost session may have cost.
        var excused: Set<Int> = []
        /// By topic, the place of the last message that was new to the app.
        var places: [String: UInt64] = [:]
        /// Until the broker has stored a session above this number with all subscriptions, messages
        /// pass the phone by.
        var missesBelow: UInt64? = 0
    }

    private(set) var messages: [Int: Message] = [:]
    var receivers: [Receiver]
    /// Phones whose session the broker has lost: what they publish may come twice at QoS 2.
    private(set) var lostSessions: Set<Int> = []
    private var sequenceOwners: [[UInt8]: [UInt64: Int]] = [:]
    private(set) var figures = Figures()

    /// What a history has shown.
    struct Figures {
        var published = 0
        /// Messages of QoS 1 and 2 that had to come, by receiver, and those that did.
        var expected = 0
        var arrived = 0
        /// Came again because the program was killed before the acknowledgement was stored.
        var repeatedByKill = 0
        /// QoS 1 without sequence and name.
        var repeatedAtLeastOnce = 0
        /// A session that its publisher had lost.
        var repeatedByLostSession = 0
        /// Copies that the core told apart.
        var toldApart = 0
        var losses = 0
        var writes = 0
        /// By histories that cut 30 % of them.
        var writesCut = 0
        var cuts = 0
        var appKills = 0
        var brokerKills = 0
        var connections = 0

        static func += (left: inout Figures, right: Figures) {
            left.published += right.published
            left.expected += right.expected
            left.arrived += right.arrived
            left.repeatedByKill += right.repeatedByKill
            left.repeatedAtLeastOnce += right.repeatedAtLeastOnce
            left.repeatedByLostSession += right.repeatedByLostSession
            left.toldApart += right.toldApart
            left.losses += right.losses
            left.writes += right.writes
            left.writesCut += right.writesCut
            left.cuts += right.cuts
            left.appKills += right.appKills
            left.brokerKills += right.brokerKills
            left.connections += right.connections
        }
    }

    init(phones: Int) { receivers = Array(repeating: Receiver(), count: phones) }

    mutating func count(_ change: (inout Figures) -> Void) { change(&figures) }

    // MARK: Publishing

    mutating func published(_ number: Int, _ message: Message) {
        messages[number] = message
        figures.published += 1
        for phone in receivers.indices where receivers[phone].missesBelow != nil {
            receivers[phone].excused.insert(number)
        }
    }

    mutating func accepted(_ number: Int) { messages[number]?.isAccepted = true }

    // MARK: Sessions

    /// The broker has lost the phone's session: what waited for it is gone, and so is all until it
    /// subscribes anew.
    mutating func sessionEnded(_ phone: Int, lastSession: UInt64) {
        lostSessions.insert(phone)
        receivers[phone].missesBelow = lastSession
        excuseMissing(phone)
    }

    /// All messages reach the phone from now on.
    mutating func sessionBegan(_ phone: Int) {
        receivers[phone].missesBelow = nil
        excuseMissing(phone)
    }

    private mutating func excuseMissing(_ phone: Int) {
        for number in messages.keys where receivers[phone].got[number] == nil {
            receivers[phone].excused.insert(number)
        }
    }

    // MARK: Receiving

    mutating func came(_ message: SimulatedMessage, to phone: Int, life: Int) throws {
        guard let known = messages[message.number] else {
            throw Failure(description: "\(message) was never published")
        }
        if message.sequence > 0 { try noteSequence(message, phone) }
        let times = receivers[phone].got[message.number, default: 0]
        receivers[phone].got[message.number] = times + 1
        defer { receivers[phone].life[message.number] = life }
        guard times > 0 else {
            try noteOrder(message, known, phone)
            return
        }
        if receivers[phone].life[message.number] != life,
            !receivers[phone].acknowledged.contains(message.number)
        {
            figures.repeatedByKill += 1
        } else if known.qos == 1, !known.hasFacts {
            figures.repeatedAtLeastOnce += 1
        } else if known.qos == 2, !known.hasFacts, known.phone.map(lostSessions.contains) == true {
            figures.repeatedByLostSession += 1
        } else {
            throw Failure(
                description: "message \(message.number) of QoS \(known.qos) came again to phone "
                    + "\(phone)")
        }
    }

    private mutating func noteSequence(_ message: SimulatedMessage, _ phone: Int) throws {
        let owner = sequenceOwners[message.channel, default: [:]][message.sequence]
        guard owner == nil || owner == message.number else {
            throw Failure(
                description: "messages \(owner ?? 0) and \(message.number) both have sequence "
                    + "\(message.sequence)")
        }
        sequenceOwners[message.channel, default: [:]][message.sequence] = message.number
        guard receivers[phone].told[message.channel]?.contains(message.sequence) != true else {
            throw Failure(
                description: "sequence \(message.sequence) came to phone \(phone) after it was "
                    + "told as lost")
        }
        receivers[phone].sequences[message.channel, default: []].insert(message.sequence)
        receivers[phone].superseded[message.channel, default: []].formUnion(message.superseded)
    }

    /// Messages that are new to the app come in the order of their topic.
    private mutating func noteOrder(
        _ message: SimulatedMessage, _ known: Message, _ phone: Int
    ) throws {
        // Messages of QoS 0 are not sent again, so that they overtake others. Of a message that was
        // published while the phone had no session, a second copy may come.
        guard known.qos > 0, !receivers[phone].excused.contains(message.number) else { return }
        let place = message.sequence > 0 ? message.sequence : UInt64(message.number)
        let last = receivers[phone].places[known.topic] ?? 0
        guard place > last else {
            throw Failure(
                description: "\(place) of \(known.topic) came to phone \(phone) after \(last)")
        }
        receivers[phone].places[known.topic] = place
    }

    mutating func acknowledged(_ message: SimulatedMessage, by phone: Int) {
        receivers[phone].acknowledged.insert(message.number)
        if message.sequence > 0 {
            receivers[phone].acknowledgedSequences[message.channel, default: []]
                .insert(message.sequence)
        }
    }

    mutating func told(_ channel: [UInt8], _ lost: [ClosedRange<UInt64>], to phone: Int) throws {
        for sequence in lost.joined() {
            figures.losses += 1
            let isNew = receivers[phone].told[channel, default: []].insert(sequence).inserted
            let mayTell = receivers[phone].mayTellAgain[channel]?.remove(sequence) != nil
            guard isNew || mayTell else {
                throw Failure(description: "phone \(phone) was told twice that \(sequence) is lost")
            }
            guard receivers[phone].acknowledgedSequences[channel]?.contains(sequence) != true else {
                throw Failure(
                    description: "phone \(phone) was told that \(sequence) is lost, which it had")
            }
        }
    }

    /// The program was killed in the turn in which the app was told of this.
    mutating func killed(after channel: [UInt8], _ lost: [ClosedRange<UInt64>], phone: Int) {
        receivers[phone].mayTellAgain[channel, default: []].formUnion(lost.joined())
    }

    // MARK: The end

    /// Checks what holds when everything has had its time.
    mutating func check() throws {
        for phone in receivers.indices {
            guard receivers[phone].missesBelow == nil else {
                throw Failure(description: "the broker has no subscriptions of phone \(phone)")
            }
            try checkArrival(phone)
            try checkLosses(phone)
        }
    }

    private mutating func checkArrival(_ phone: Int) throws {
        let receiver = receivers[phone]
        let superseded = Set(
            receiver.superseded.flatMap { channel, sequences in
                sequences.compactMap { sequenceOwners[channel]?[$0] }
            })
        for (number, message) in messages.sorted(by: { $0.key < $1.key })
        where message.isAccepted && message.qos > 0 && !receiver.excused.contains(number) {
            // Nobody may have got a message that was replaced.
            if message.replaces, receiver.got[number] == nil { continue }
            figures.expected += 1
            if receiver.got[number] != nil {
                figures.arrived += 1
            } else if !superseded.contains(number) {
                throw Failure(
                    description: "message \(number) of \(message.topic), QoS \(message.qos), did "
                        + "not come to phone \(phone)")
            }
        }
    }

    /// Every hole above the first sequence that the app acknowledged is told, or explained by a
    /// later message.
    private func checkLosses(_ phone: Int) throws {
        let receiver = receivers[phone]
        for (channel, acknowledged) in receiver.acknowledgedSequences {
            guard let first = acknowledged.min(), let last = acknowledged.max() else { continue }
            for sequence in first...last {
                let isKnown =
                    receiver.sequences[channel]?.contains(sequence) == true
                    || receiver.superseded[channel]?.contains(sequence) == true
                    || receiver.told[channel]?.contains(sequence) == true
                if !isKnown {
                    throw Failure(
                        description: "phone \(phone) was not told that \(sequence) of "
                            + "\(String(decoding: channel, as: UTF8.self)) is lost")
                }
            }
        }
        if !lostSessions.contains(phone),
            let told = receiver.told.values.first(where: { !$0.isEmpty })
        {
            throw Failure(
                description: "phone \(phone) was told of losses, \(told.sorted()), and none was")
        }
    }
}

extension Ledger.Message {
    /// A later message of its topic takes its place while it waits.
    var replaces: Bool { topic == Self.replacingTopic }

    static let replacingTopic = "o/2"
}
