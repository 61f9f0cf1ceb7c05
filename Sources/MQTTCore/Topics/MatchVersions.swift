import MQTTCodec
import Structures

/// Tells which cached matches a change of subscriptions has outdated.
///
/// A filter with wildcards can only match topics that begin with the levels before its first
/// wildcard. These levels, at most ``mostLevels``, choose one of the versions kept here, and a change
/// raises that one: a phone that subscribes to `users/7/#` leaves the matches of other users'
/// topics alone. A filter without wildcards matches one topic, whose match the cache drops itself.
/// Different beginnings may share a version, which outdates more than necessary.
struct MatchVersions: ~Copyable {
    /// The versions that one topic's match depends on.
    struct Dependencies: BitwiseCopyable {
        fileprivate var buckets: InlineArray<4, UInt16> = InlineArray(repeating: 0)
    }

    /// Levels of a filter that choose its version.
    static var mostLevels: Int { 4 }
    private static var bucketCount: Int { 4_096 }

    /// Counts all changes.
    private(set) var latest: UInt64 = 1
    private let versions: UnsafeMutablePointer<UInt64>
    private let hash: KeyedHash

    init(hash: KeyedHash) {
        self.hash = hash
        versions = .allocate(capacity: Self.bucketCount)
        versions.initialize(repeating: 0, count: Self.bucketCount)
    }

    deinit { versions.deallocate() }

    /// Outdates the matches of every topic.
    mutating func changeAll() {
        latest += 1
        versions[Self.bucketOfAll] = latest
    }

    /// Outdates the matches of topics that a filter with wildcards may match. False for a filter
    /// without wildcards, which is itself the only topic that it matches.
    mutating func change(_ filter: UnsafeRawBufferPointer) -> Bool {
        latest += 1
        var end = 0
        var levels = 0
        for offset in 0..<filter.count {
            switch filter[offset] {
            case 0x2B, 0x23:
                versions[bucket(UnsafeRawBufferPointer(rebasing: filter[..<end]))] = latest
                return true
            case TopicTree.separator where levels < Self.mostLevels:
                levels += 1
                end = offset
            default: continue
            }
        }
        return false
    }

    /// The versions that the match of a topic depends on.
    func dependencies(of topic: UnsafeRawBufferPointer) -> Dependencies {
        var dependencies = Dependencies()
        var levels = TopicLevels(topic)
        for level in 0..<Self.mostLevels {
            guard let text = levels.next(), let base = topic.baseAddress, let end = text.baseAddress
            else { break }
            let beginning = UnsafeRawBufferPointer(start: base, count: end - base + text.count)
            dependencies.buckets[level] = UInt16(bucket(beginning))
        }
        return dependencies
    }

    /// True while nothing that a match depends on has changed since `version`.
    func areUnchanged(_ dependencies: Dependencies, since version: UInt64) -> Bool {
        for index in dependencies.buckets.indices
        where versions[Int(dependencies.buckets[index])] > version { return false }
        return versions[Self.bucketOfAll] <= version
    }

    /// The version of filters that begin with a wildcard, on which every match depends.
    private static var bucketOfAll: Int { 0 }

    private func bucket(_ levels: UnsafeRawBufferPointer) -> Int {
        levels.isEmpty ? Self.bucketOfAll : Int(hash(levels) & UInt64(Self.bucketCount - 1))
    }
}
