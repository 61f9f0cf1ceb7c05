import Authorization
import BrokerAPI
import BrokerCore
import MQTTCore
import Store
import Structures

extension Shard {
    /// The features of this shard, which ``init(limits:allowsAnonymous:systemTopicInterval:store:verifiesPasswords:asksBeforeCertificates:access:bans:seed:now:wallClockMs:)``
    /// has made.
    /// Whoever takes them may give them work, so they are stirred.
    var features: Features {
        let features = unsafeDowncast(followers, to: Features.self)
        features.agenda.isStirred = true
        return features
    }

    /// True when lists, bans, disconnects or a drain of the operator go on. Asked in each turn, it
    /// stirs nothing.
    public var hasOperatorWork: Bool {
        unsafeDowncast(followers, to: Features.self).requests.hasWork || bans.isSearching
            || userDisconnects.hasWork || drain.isActive
    }

    /// A shard with all features. `seed` is for hashes and generated client identifiers; it must be
    /// random.
    public init(
        limits: BrokerLimits, allowsAnonymous: [Bool], systemTopicInterval: Duration,
        store: any Store, verifiesPasswords: Bool, asksBeforeCertificates: Bool = false,
        access: AccessRules? = nil, bans: BanTable? = nil, seed: UInt64, now: MonotonicTime,
        wallClockMs: Int64
    ) {
        self.init(
            followers: Features(limits: limits, hash: KeyedHash(seed: seed), now: now),
            limits: limits, allowsAnonymous: allowsAnonymous,
            systemTopicInterval: systemTopicInterval, store: store,
            verifiesPasswords: verifiesPasswords, asksBeforeCertificates: asksBeforeCertificates,
            access: access, bans: bans, seed: seed, now: now, wallClockMs: wallClockMs)
    }
}

/// What waits for a commit, in the number that the shard keeps with it.
enum Awaited {
    /// The answer of this number to a command.
    case reply(UInt64)
    /// A slice of this group of messages.
    case group(UInt64)

    private static var groupBit: UInt64 { 1 << 63 }

    init(_ number: UInt64) {
        self =
            number & Self.groupBit == 0
            ? .reply(number) : .group(number & ~Self.groupBit)
    }

    /// The action that ``Features/committed(_:)`` gets back.
    var action: CommitLog.Action {
        switch self {
        case .reply(let number): .follower(number)
        case .group(let number): .follower(number | Self.groupBit)
        }
    }
}

/// What a part of a queue is read for, in the tag of the read.
enum FeatureRead {
    /// A query for a queue; its number is 1 to 2^62 - 1.
    case question(UInt64)
    /// The wake of a device, whose handle's generation is below 2^24.
    case wake(Handle)

    private static var wakeBit: UInt64 { 1 << 62 }

    init(_ tag: UInt64) {
        self =
            tag & Self.wakeBit == 0
            ? .question(tag) : .wake(Handle(packed: tag & ~Self.wakeBit))
    }

    var tag: ReadTag {
        switch self {
        case .question(let number): .feature(number)
        case .wake(let device): .feature(Self.wakeBit | device.packed)
        }
    }
}
