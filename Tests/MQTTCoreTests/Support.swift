import HermesTesting
import MQTTCodec

@testable import MQTTCore
@testable import Structures

/// A pool that is freed at the end of its test.
final class TestPool {
    let pool = BytePool()

    deinit { pool.destroy() }

    /// Free buffers of each class: equal before and after a round that frees everything.
    ///
    /// The first round may carve pages; from the second on, a leak changes a count.
    var freeCounts: [Int] { (0..<BytePool.classCount).map { pool.classes[$0].freeCount } }

    func message(
        _ topic: String = "t", payload: [UInt8] = [1], qos: QoS = .atLeastOnce, retain: Bool = false
    ) -> Message {
        Array(topic.utf8).withUnsafeBytes { topic in
            payload.withUnsafeBytes { payload in
                Message(topic: topic, payload: payload, qos: qos, retain: retain, pool: pool)
            }
        }
    }
}

/// True when a filter matches a topic name (sections 4.7.1 to 4.7.3).
func matches(_ filter: String, _ topic: String) -> Bool {
    func match(_ filter: ArraySlice<Substring>, _ topic: ArraySlice<Substring>) -> Bool {
        guard let level = filter.first else { return topic.isEmpty }
        if level == "#" { return true }
        guard let name = topic.first, level == "+" || level == name else { return false }
        return match(filter.dropFirst(), topic.dropFirst())
    }
    let levels = filter.split(separator: "/", omittingEmptySubsequences: false)[...]
    let names = topic.split(separator: "/", omittingEmptySubsequences: false)[...]
    if topic.hasPrefix("$"), levels.first == "+" || levels.first == "#" { return false }
    return match(levels, names)
}

extension SplitMix64 {
    /// A topic name of up to `levels` levels over a small alphabet, with empty levels and `$`.
    mutating func topic(levels: Int = 4) -> String {
        let names = ["a", "b", "", "$x", "$", "a name of more than twelve bytes"]
        while true {
            let count = number(in: 1...levels)
            let topic = (0..<count).map { _ in once(in: 2) ? "a" : pick(names) }
                .joined(separator: "/")
            if !topic.isEmpty { return topic }
        }
    }

    /// A topic filter over the same alphabet.
    mutating func filter(levels: Int = 4) -> String {
        while true {
            var parts = topic(levels: levels).split(
                separator: "/", omittingEmptySubsequences: false
            ).map { once(in: 3) ? "+" : String($0) }
            switch number(in: 0...5) {
            case 0...1: parts[parts.count - 1] = "#"
            case 2: parts.append("#")
            default: break
            }
            let filter = parts.joined(separator: "/")
            if !filter.isEmpty { return filter }
        }
    }
}

extension String {
    func withTopicBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows
        -> Result
    {
        try Array(utf8).withUnsafeBytes { try body($0) }
    }
}
