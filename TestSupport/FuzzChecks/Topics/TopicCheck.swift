import MQTTCodec
import MQTTCore
import Structures

/// Subscriptions and retained messages agree with ``NaiveMatcher`` and two dictionaries.
///
/// An input is a program in which sessions subscribe, unsubscribe and end, topics are matched, and
/// retained messages change while cursors walk over them. At the end all is removed, and the pool
/// must have its memory back.
struct TopicCheck: ~Copyable {
    private static let sessionCount = 6
    /// The most steps; more make an input slow without testing more.
    private static let mostSteps = 400

    private let trace: ((String) -> Void)?
    private let pool: BytePool
    private let hash: KeyedHash
    private var trie: SubscriptionTrie
    private var lists: [SubscriptionTrie.List]
    /// The subscriptions of each session.
    private var wanted: [[[UInt8]: QoS]]
    /// Topics that were matched, which the cache keeps.
    private var matched: Set<[UInt8]> = []
    private var retained: RetainedWalks

    static func run(_ input: [UInt8], trace: ((String) -> Void)?) throws(CheckFailure) {
        let pool = BytePool()
        try check(input, pool, trace)
        pool.destroy()
    }

    private static func check(
        _ input: [UInt8], _ pool: BytePool, _ trace: ((String) -> Void)?
    ) throws(CheckFailure) {
        var program = ByteProgram(input)
        var check = TopicCheck(seed: UInt64(program.byte()), pool, trace)
        var steps = 0
        while !program.isAtEnd, steps < mostSteps {
            steps += 1
            try check.step(&program)
        }
        try check.finish()
    }

    private init(seed: UInt64, _ pool: BytePool, _ trace: ((String) -> Void)?) {
        self.trace = trace
        self.pool = pool
        hash = KeyedHash(seed: seed)
        trie = SubscriptionTrie(hash: hash, pool: pool)
        lists = Array(repeating: SubscriptionTrie.List(), count: Self.sessionCount)
        wanted = Array(repeating: [:], count: Self.sessionCount)
        retained = RetainedWalks(hash: hash, pool: pool, trace: trace)
    }

    private mutating func step(_ program: inout ByteProgram) throws(CheckFailure) {
        let opcode = program.byte()
        let session = Int(opcode >> 5) % Self.sessionCount
        switch opcode & 0x0F {
        case 0, 1, 2:
            try subscribe(session, TopicVocabulary.filter(&program), qos: program.byte())
        case 3: try unsubscribe(session, TopicVocabulary.filter(&program))
        case 4: try unsubscribeOwn(session, Int(program.byte()))
        case 5: removeAll(session)
        case 6, 7, 8: try match(TopicVocabulary.name(&program))
        case 9, 10, 11: try retained.retain(TopicVocabulary.name(&program))
        case 12: try retained.remove(TopicVocabulary.name(&program))
        case 13: retained.beginWalk(TopicVocabulary.filter(&program))
        default: try retained.advanceWalk(Int(program.byte()))
        }
        let count = wanted.reduce(0) { $0 + $1.count }
        try CheckFailure.unless(
            trie.count == count, "the trie counts \(trie.count) subscriptions of \(count)")
    }

    // MARK: Subscriptions

    private mutating func subscribe(
        _ session: Int, _ filter: [UInt8], qos level: UInt8
    ) throws(CheckFailure) {
        let qos = QoS.allCases[Int(level) % QoS.allCases.count]
        trace?("session \(session) subscribes to \(text(filter)) at \(qos)")
        let result = filter.withUnsafeBytes {
            trie.subscribe(
                UInt32(session), &lists[session], filter: $0, grant: SubscriptionGrant(qos))
        }
        let isNew = wanted[session].updateValue(qos, forKey: filter) == nil
        try CheckFailure.unless(
            (result == .added) == isNew, "\(text(filter)) of \(session) was \(result)")
    }

    private mutating func unsubscribe(_ session: Int, _ filter: [UInt8]) throws(CheckFailure) {
        trace?("session \(session) unsubscribes from \(text(filter))")
        let wasFound = filter.withUnsafeBytes {
            trie.unsubscribe(UInt32(session), &lists[session], filter: $0)
        }
        let wasThere = wanted[session].removeValue(forKey: filter) != nil
        try CheckFailure.unless(
            wasFound == wasThere, "\(text(filter)) of \(session): \(wasFound), not \(wasThere)")
    }

    private mutating func unsubscribeOwn(_ session: Int, _ choice: Int) throws(CheckFailure) {
        let own = wanted[session].keys.sorted { $0.lexicographicallyPrecedes($1) }
        guard !own.isEmpty else { return }
        try unsubscribe(session, own[choice % own.count])
    }

    private mutating func removeAll(_ session: Int) {
        trace?("session \(session) ends")
        trie.removeAll(&lists[session])
        wanted[session] = [:]
    }

    /// Matches twice: the second result comes from the cache.
    private mutating func match(_ topic: [UInt8]) throws(CheckFailure) {
        trace?("match \(text(topic))")
        matched.insert(topic)
        var expected: [UInt32: QoS] = [:]
        for (session, filters) in wanted.enumerated() {
            let granted = filters.filter { NaiveMatcher.matches($0.key, topic) }.values.max()
            if let granted { expected[UInt32(session)] = granted }
        }
        for _ in 0..<2 {
            var found: [UInt32: QoS] = [:]
            var isTwice = false
            topic.withUnsafeBytes { bytes in
                guard let matches = trie.match(bytes, most: .max) else { return }
                for match in matches {
                    isTwice = found.updateValue(match.qos, forKey: match.session) != nil || isTwice
                }
            }
            try CheckFailure.unless(!isTwice, "a session stands twice for \(text(topic))")
            try CheckFailure.unless(
                found == expected, "\(text(topic)) goes to \(found), not to \(expected)")
        }
    }

    // MARK: The end

    private mutating func finish() throws(CheckFailure) {
        for session in 0..<Self.sessionCount {
            var filters: [[UInt8]: QoS] = [:]
            for (filter, qos) in trie.subscriptions(of: lists[session]) { filters[filter] = qos }
            try CheckFailure.unless(
                filters == wanted[session] && Int(lists[session].count) == filters.count,
                "session \(session) holds \(filters), not \(wanted[session])")
            removeAll(session)
        }
        try retained.finish()
        // Without subscribers the cache holds only topics.
        let topics = matched.sorted { $0.lexicographicallyPrecedes($1) }
        for topic in topics { try match(topic) }
        let expected = bytesInUse(afterMatching: topics)
        try CheckFailure.unless(
            pool.bytesInUse == expected,
            "\(pool.bytesInUse) bytes stay in use, not \(expected)")
    }

    /// Memory of a new trie after matching these topics.
    private func bytesInUse(afterMatching topics: [[UInt8]]) -> Int {
        let fresh = BytePool()
        defer { fresh.destroy() }
        var trie = SubscriptionTrie(hash: hash, pool: fresh)
        for topic in topics { topic.withUnsafeBytes { _ = trie.match($0, most: .max) } }
        return fresh.bytesInUse
    }
}

/// A topic name or filter, for a trace or a failure.
func text(_ bytes: [UInt8]) -> String { "\"\(String(decoding: bytes, as: UTF8.self))\"" }
