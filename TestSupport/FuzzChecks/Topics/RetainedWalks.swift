import MQTTCodec
import MQTTCore
import Structures

/// Retained messages, a dictionary with the same content, and walks in several steps.
struct RetainedWalks: ~Copyable {
    private static let mostWalks = 3

    /// A cursor and the messages that it must return.
    private struct Walk {
        var cursor: RetainedCursor
        /// Topics that matched at the walk's beginning and have had a message ever since.
        var owed: Set<[UInt8]>
        var found: Set<[UInt8]> = []
    }

    private let trace: ((String) -> Void)?
    private let pool: BytePool
    private var messages: RetainedMessages
    /// The payload by topic.
    private var kept: [[UInt8]: [UInt8]] = [:]
    private var walks: [Walk] = []
    private var number: UInt8 = 0

    init(hash: KeyedHash, pool: BytePool, trace: ((String) -> Void)?) {
        self.trace = trace
        self.pool = pool
        messages = RetainedMessages(hash: hash, pool: pool)
    }

    /// Retains a message of an individual size.
    mutating func retain(_ topic: [UInt8]) throws(CheckFailure) {
        number &+= 1
        let payload = [UInt8](repeating: number, count: 1 + Int(number % 7) * 10)
        trace?("retain \(payload.count) bytes for \(text(topic))")
        publish(topic, payload)
        kept[topic] = payload
        try checkCounts()
    }

    /// Removes a topic's message in one of two ways.
    mutating func remove(_ topic: [UInt8]) throws(CheckFailure) {
        trace?("remove what is retained for \(text(topic))")
        if kept.count.isMultiple(of: 2) {
            publish(topic, [])
        } else {
            let wasFound = topic.withUnsafeBytes { messages.remove($0) }
            try CheckFailure.unless(
                wasFound == (kept[topic] != nil), "removing \(text(topic)) said \(wasFound)")
        }
        kept[topic] = nil
        for index in walks.indices { walks[index].owed.remove(topic) }
        try checkCounts()
    }

    mutating func beginWalk(_ filter: [UInt8]) {
        guard walks.count < Self.mostWalks else { return }
        trace?("walk over \(text(filter))")
        let cursor = filter.withUnsafeBytes { messages.cursor($0) }
        let owed = kept.keys.filter { NaiveMatcher.matches(filter, $0) }
        walks.append(Walk(cursor: cursor, owed: Set(owed)))
    }

    /// Continues one walk by the number of steps in the lower half of `choice`.
    mutating func advanceWalk(_ choice: Int) throws(CheckFailure) {
        guard !walks.isEmpty else { return }
        let index = (choice >> 4) % walks.count
        var steps = choice & 0x0F
        trace?("walk \(index) goes \(steps) steps")
        while true {
            switch messages.next(&walks[index].cursor, steps: &steps) {
            case .message(let message): try found(message, by: index)
            case .paused: return
            case .finished:
                try CheckFailure.unless(
                    walks[index].owed.isEmpty,
                    "the walk over \(text(walks[index].cursor.filter)) ended without "
                        + "\(walks[index].owed.map(text))")
                let ended = walks.remove(at: index)
                messages.end(ended.cursor)
                return
            }
        }
    }

    /// Ends the walks and removes everything.
    mutating func finish() throws(CheckFailure) {
        while let walk = walks.popLast() { messages.end(walk.cursor) }
        for filter in ["#", "+/#", "$SYS/#", "a/+"] {
            beginWalk([UInt8](filter.utf8))
            while !walks.isEmpty { try advanceWalk(0x0F) }
        }
        for topic in kept.keys.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            try remove(topic)
        }
    }

    private mutating func found(_ message: Message, by index: Int) throws(CheckFailure) {
        let topic = [UInt8](message.topic)
        let filter = walks[index].cursor.filter
        try CheckFailure.unless(
            NaiveMatcher.matches(filter, topic), "\(text(filter)) found \(text(topic))")
        try CheckFailure.unless(
            kept[topic] == [UInt8](message.payload),
            "\(text(filter)) found a former message of \(text(topic))")
        let isNew = walks[index].found.insert(topic).inserted
        try CheckFailure.unless(isNew, "\(text(filter)) found \(text(topic)) twice")
        walks[index].owed.remove(topic)
    }

    private mutating func publish(_ topic: [UInt8], _ payload: [UInt8]) {
        let message = topic.withUnsafeBytes { topic in
            payload.withUnsafeBytes { payload in
                Message(topic: topic, payload: payload, qos: .atLeastOnce, retain: true, pool: pool)
            }
        }
        messages.update(message)
        message.release(in: pool)
    }

    private func checkCounts() throws(CheckFailure) {
        try CheckFailure.unless(
            messages.count == kept.count, "\(messages.count) messages retained of \(kept.count)")
        try CheckFailure.unless(
            (messages.byteCount == 0) == kept.isEmpty,
            "\(messages.byteCount) bytes retained in \(kept.count) messages")
    }
}
