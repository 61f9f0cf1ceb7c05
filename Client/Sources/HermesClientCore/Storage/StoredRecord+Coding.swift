import MQTTCodec

/// A record is its kind, one byte, and its fields in the order of the case's declaration.
extension StoredRecord {
    /// The first byte of a record. Numbers are never used again for another meaning; 8, 10 and 12
    /// have been used.
    private enum Kind: UInt8 {
        case sessionStarted = 1
        case sessionResumed = 2
        case queued = 3
        case released = 4
        case finished = 5
        case received = 6
        case receivedReleased = 7
        case subscriptionForgotten = 9
        case lossTold = 11
        case messageName = 13
        case rhythm = 14
        case counters = 15
        case connecting = 16
        case subscription = 17
        case sequence = 18
        case channel = 19
        case heldBack = 20
        case retried = 21
        case discarded = 22
        case reportRefused = 23
        case owner = 24
        case counted = 25
        case baselineForgotten = 26
        case channelAnew = 27
        case uncountedSubscription = 28
        case cleanSessionStarted = 29
    }

    func encode(to writer: inout RecordWriter) {
        writer.append(kind.rawValue)
        switch self {
        case .connecting, .sessionStarted, .cleanSessionStarted: break
        case .sessionResumed(let isCertain): writer.append(isCertain)
        case .queued(let message): Self.encode(message, to: &writer)
        case .released(let key), .finished(let key), .heldBack(let key), .retried(let key),
            .discarded(let key):
            writer.append(key)
        case .reportRefused(let at): writer.append(at ?? 0)
        case .owner(let identifier): writer.append(identifier)
        case .counted(let received, let duplicates):
            writer.append(received)
            writer.append(duplicates)
        case .baselineForgotten(let channel): writer.append(channel)
        case .received(let identifier, let digest):
            writer.append(identifier.rawValue)
            writer.append(digest)
        case .receivedReleased(let identifier): writer.append(identifier.rawValue)
        case .subscription(let subscription):
            writer.append(subscription.filter)
            writer.append(subscription.qos.rawValue)
            writer.append(Self.code(of: subscription.state))
        case .subscriptionForgotten(let filter): writer.append(filter)
        case .sequence(let numbers):
            writer.append(numbers.channel)
            writer.append(numbers.sequence)
            writer.append(numbers.publishedAtMilliseconds)
            writer.append(UInt32(truncatingIfNeeded: numbers.superseded.count))
            for sequence in numbers.superseded { writer.append(sequence) }
        case .lossTold(let channel, let upTo, let count):
            writer.append(channel)
            writer.append(upTo)
            writer.append(count)
        case .channel(let channel, let window): Self.encode(channel, window, to: &writer)
        case .messageName(let name): writer.append(name)
        case .rhythm(let label, let rhythm): Self.encode(label, rhythm, to: &writer)
        case .counters(let counters):
            for count in counters.counts { writer.append(count) }
            writer.append(counters.sinceUnixMilliseconds)
        }
    }

    /// Reads one record; `nil` for bytes that are none.
    static func decode(_ fields: inout RecordFields) -> StoredRecord? {
        guard let byte = fields.integer(UInt8.self), let kind = Kind(rawValue: byte) else {
            return nil
        }
        switch kind {
        case .connecting: return .connecting
        case .sessionStarted: return .sessionStarted
        case .cleanSessionStarted: return .cleanSessionStarted
        case .sessionResumed: return fields.flag().map { .sessionResumed(isCertain: $0) }
        case .queued: return decodeMessage(&fields).map { .queued($0) }
        case .released: return fields.integer().map { .released($0) }
        case .finished: return fields.integer().map { .finished($0) }
        case .heldBack: return fields.integer().map { .heldBack($0) }
        case .retried: return fields.integer().map { .retried($0) }
        case .discarded: return fields.integer().map { .discarded($0) }
        case .reportRefused: return fields.integer().map { .reportRefused(at: $0 == 0 ? nil : $0) }
        case .owner: return fields.string().map { .owner($0) }
        case .counted:
            guard let received = fields.integer(UInt32.self),
                let duplicates = fields.integer(UInt32.self)
            else { return nil }
            return .counted(received: received, duplicates: duplicates)
        case .baselineForgotten: return fields.string().map { .baselineForgotten($0) }
        case .received:
            guard let identifier = identifier(&fields), let digest = fields.integer(UInt64.self)
            else { return nil }
            return .received(identifier, digest: digest)
        case .receivedReleased: return identifier(&fields).map { .receivedReleased($0) }
        case .subscription, .uncountedSubscription:
            guard let filter = fields.string(), let qos = qos(&fields),
                let number = fields.integer(UInt8.self),
                let state = Self.state(ofCode: number)
            else { return nil }
            return .subscription(
                Subscription(
                    filter: filter, qos: qos, state: state, countsLosses: kind == .subscription))
        case .subscriptionForgotten: return fields.string().map { .subscriptionForgotten($0) }
        case .sequence: return decodeNumbers(&fields).map { .sequence($0) }
        case .lossTold:
            guard let channel = fields.string(), let upTo = fields.integer(UInt64.self),
                let count = fields.integer(UInt64.self)
            else { return nil }
            return .lossTold(channel, upTo: upTo, count: count)
        case .channel: return decodeChannel(&fields, beginsAnew: false)
        case .channelAnew: return decodeChannel(&fields, beginsAnew: true)
        case .messageName: return fields.string().map { .messageName($0) }
        case .rhythm: return decodeRhythm(&fields)
        case .counters: return decodeCounters(&fields).map { .counters($0) }
        }
    }

    private var kind: Kind {
        switch self {
        case .connecting: .connecting
        case .sessionStarted: .sessionStarted
        case .cleanSessionStarted: .cleanSessionStarted
        case .sessionResumed: .sessionResumed
        case .queued: .queued
        case .released: .released
        case .finished: .finished
        case .heldBack: .heldBack
        case .retried: .retried
        case .discarded: .discarded
        case .reportRefused: .reportRefused
        case .owner: .owner
        case .counted: .counted
        case .baselineForgotten: .baselineForgotten
        case .received: .received
        case .receivedReleased: .receivedReleased
        case .subscription(let asked):
            asked.countsLosses ? .subscription : .uncountedSubscription
        case .subscriptionForgotten: .subscriptionForgotten
        case .sequence: .sequence
        case .lossTold: .lossTold
        case .channel(_, let window): window.beginsAnew ? .channelAnew : .channel
        case .messageName: .messageName
        case .rhythm: .rhythm
        case .counters: .counters
        }
    }

    private static func code(of state: Subscription.State) -> UInt8 {
        switch state {
        case .wanted: 0
        case .lost: 1
        case .unwanted: 2
        case .granted(let qos): 3 + qos.rawValue
        }
    }

    private static func state(ofCode code: UInt8) -> Subscription.State? {
        switch code {
        case 0: .wanted
        case 1: .lost
        case 2: .unwanted
        default: QoS(rawValue: code - 3).map { .granted($0) }
        }
    }

    private static func encode(_ message: OutgoingMessage, to writer: inout RecordWriter) {
        writer.append(message.key)
        writer.append(message.identifier.rawValue)
        writer.append(message.topic)
        writer.append(message.payload)
        writer.append(message.qos.rawValue)
        writer.append(message.retain)
        writer.append(message.isReleased)
    }

    private static func decodeMessage(_ fields: inout RecordFields) -> OutgoingMessage? {
        guard let key = fields.integer(UInt64.self), let identifier = identifier(&fields),
            let topic = fields.string(), let payload = fields.string(), let qos = qos(&fields),
            qos != .atMostOnce, let retain = fields.flag(), let isReleased = fields.flag()
        else { return nil }
        return OutgoingMessage(
            key: key, identifier: identifier, topic: topic, payload: payload, qos: qos,
            retain: retain, isReleased: isReleased)
    }

    private static func decodeNumbers(_ fields: inout RecordFields) -> SequenceNumbers? {
        guard let channel = fields.string(), let sequence = fields.integer(UInt64.self),
            let publishedAt = fields.integer(Int64.self), let count = fields.integer(UInt32.self)
        else { return nil }
        var superseded: [UInt64] = []
        for _ in 0..<count {
            guard let number = fields.integer(UInt64.self) else { return nil }
            superseded.append(number)
        }
        return SequenceNumbers(
            channel: channel, sequence: sequence, publishedAtMilliseconds: publishedAt,
            superseded: superseded)
    }

    private static func encode(
        _ channel: [UInt8], _ window: ChannelWindow, to writer: inout RecordWriter
    ) {
        writer.append(channel)
        writer.append(window.baseline)
        writer.append(window.mark)
        writer.append(window.toldUpTo)
        writer.append(window.losses)
        writer.append(window.latestMilliseconds)
        for word in window.words { writer.append(word) }
    }

    private static func decodeChannel(
        _ fields: inout RecordFields, beginsAnew: Bool
    ) -> StoredRecord? {
        guard let channel = fields.string(), let baseline = fields.integer(UInt64.self),
            let mark = fields.integer(UInt64.self), let toldUpTo = fields.integer(UInt64.self),
            let losses = fields.integer(UInt64.self), let latest = fields.integer(Int64.self)
        else { return nil }
        var words: [UInt64] = []
        for _ in 0..<ChannelWindow.size / 64 {
            guard let word = fields.integer(UInt64.self) else { return nil }
            words.append(word)
        }
        return ChannelWindow(
            baseline: baseline, mark: mark, toldUpTo: toldUpTo, losses: losses,
            latestMilliseconds: latest, words: words, beginsAnew: beginsAnew
        ).map { .channel(channel, $0) }
    }

    private static func encode(
        _ label: [UInt8], _ rhythm: SmartRhythm, to writer: inout RecordWriter
    ) {
        writer.append(label)
        writer.append(rhythm.seconds)
        writer.append(rhythm.search.rawValue)
        writer.append(rhythm.successes)
        writer.append(rhythm.failures)
        writer.append(rhythm.changedAtUnixMilliseconds)
    }

    private static func decodeRhythm(_ fields: inout RecordFields) -> StoredRecord? {
        guard let label = fields.string(), let seconds = fields.integer(UInt16.self),
            SmartRhythm.leastSeconds...SmartRhythm.mostSeconds ~= seconds,
            let number = fields.integer(UInt8.self),
            let search = SmartRhythm.Search(rawValue: number),
            let successes = fields.integer(UInt8.self), let failures = fields.integer(UInt8.self),
            successes < SmartRhythm.successesForMore, failures < SmartRhythm.failuresForLess,
            let changed = fields.integer(Int64.self)
        else { return nil }
        var rhythm = SmartRhythm(changedAtUnixMilliseconds: changed)
        (rhythm.seconds, rhythm.search) = (seconds, search)
        (rhythm.successes, rhythm.failures) = (successes, failures)
        return .rhythm(label, rhythm)
    }

    private static func decodeCounters(_ fields: inout RecordFields) -> ClientCounters? {
        var counts: [UInt64] = []
        for _ in 0..<ClientCounters.countsStored {
            guard let count = fields.integer(UInt64.self) else { return nil }
            counts.append(count)
        }
        guard let since = fields.integer(Int64.self) else { return nil }
        return ClientCounters(counts: counts, sinceUnixMilliseconds: since)
    }

    private static func identifier(_ fields: inout RecordFields) -> PacketIdentifier? {
        fields.integer(UInt16.self).flatMap { PacketIdentifier($0) }
    }

    private static func qos(_ fields: inout RecordFields) -> QoS? {
        fields.integer(UInt8.self).flatMap { QoS(rawValue: $0) }
    }
}
