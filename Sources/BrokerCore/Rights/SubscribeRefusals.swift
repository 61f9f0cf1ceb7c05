import Structures

/// What one SUBSCRIBE had refused, which bounds what a single packet makes us do and say.
///
/// A packet of `limits.max_packet` holds hundreds of thousands of filters. Each costs a question to the
/// rules and a walk through the trie, and each refusal a report with the client's identifier, which may
/// be 64 KiB long: without a bound one packet holds up every other client, and fills the memory.
package struct SubscribeRefusals {
    /// Filters of one packet that are looked at; those behind get 0x80.
    package static let maxFilters = 10_000
    /// Refusals after which the rest of a packet gets 0x80 unseen.
    package static let maxRefusals = 1_000
    /// Access rules that are looked at for one packet, after which its rest gets 0x80 unseen: 200 for
    /// each of its filters.
    package static let maxRuleSteps = 2_000_000
    /// Refusals of each kind that are reported; the counters miss none.
    private static let reportedOfEachKind = 8

    /// What the questions to the rules have cost.
    var ruleSteps = 0
    private var filters = 0
    private var refusals = 0
    private var atLimits = 0
    private var byRules = 0
    private var narrowed = 0

    /// Whether the packet's next filter is looked at.
    mutating func admitsNext() -> Bool {
        filters += 1
        return filters <= Self.maxFilters && refusals < Self.maxRefusals
            && ruleSteps < Self.maxRuleSteps
    }

    /// Notes a refusal; false when enough of its kind have been reported.
    mutating func isReported(_ kind: Kind) -> Bool {
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

    enum Kind {
        /// Refused at a limit, or behind one of the above.
        case atLimit
        /// Refused by the access rules.
        case byRules
        /// Granted, and reaches further than the rights.
        case narrowed
    }
}
