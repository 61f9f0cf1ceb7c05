import Structures

/// The rejected filters of one SUBSCRIBE, with bounds on its cost.
///
/// A packet of `limits.max_packet` holds hundreds of thousands of filters. Each costs a question to
/// the rules and a walk through the trie, and each rejection a report with a client identifier of
/// up to 64 KiB. Without bounds one packet would delay all other clients and fill memory.
public struct SubscribeRefusals {
    /// Filters of one packet that are processed; the rest get 0x80.
    public static let maxFilters = 10_000
    /// Rejections after which the rest of a packet gets 0x80 unchecked.
    public static let maxRefusals = 1_000
    /// Access rules evaluated for one packet (200 per filter); its rest gets 0x80 unchecked.
    public static let maxRuleSteps = 2_000_000
    /// Rejections of each kind that are reported; all are counted.
    private static let reportedOfEachKind = 8

    /// Access rules evaluated so far.
    package var ruleSteps = 0
    private var filters = 0
    private var refusals = 0
    private var atLimits = 0
    private var byRules = 0
    private var narrowed = 0

    /// True when the packet's next filter is to be processed.
    package mutating func admitsNext() -> Bool {
        filters += 1
        return filters <= Self.maxFilters && refusals < Self.maxRefusals
            && ruleSteps < Self.maxRuleSteps
    }

    /// Notes a rejection; false when enough of its kind have been reported.
    package mutating func isReported(_ kind: Kind) -> Bool {
        switch kind {
        case .atLimit:
            refusals += 1
            atLimits += 1
            return atLimits <= Self.reportedOfEachKind
        case .byRules:
            refusals += 1
            byRules += 1
            return byRules <= Self.reportedOfEachKind
        case .narrowed:
            narrowed += 1
            return narrowed <= Self.reportedOfEachKind
        }
    }

    package enum Kind {
        /// Rejected at a limit, or after one of the bounds above.
        case atLimit
        /// Denied by the access rules.
        case byRules
        /// Granted although the client may read only some of its topics.
        case narrowed
    }
}
