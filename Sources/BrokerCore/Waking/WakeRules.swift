import Authorization
import BrokerAPI

/// The rules of the configuration, ready to be asked for each message.
struct WakeRules {
    private struct Entry {
        let filter: [UInt8]
        let rule: WakeRule
    }

    private var entries: [Entry] = []

    init(_ rules: [WakeRule]) {
        entries = rules.prefix(WakeRule.most).map {
            Entry(filter: Array($0.filter.utf8), rule: $0)
        }
    }

    var isEmpty: Bool { entries.isEmpty }

    /// The rule of an index; `nil` when a reload has removed it.
    subscript(index: UInt8) -> WakeRule? {
        Int(index) < entries.count ? entries[Int(index)].rule : nil
    }

    /// What the first rule whose filter fits the topic says; without one, nobody is woken.
    func choice(for topic: UnsafeRawBufferPointer) -> WakeChoice {
        for (index, entry) in entries.enumerated()
        where entry.filter.withUnsafeBytes({ FilterMatch.matches(filter: $0, topic: topic) }) {
            return WakeChoice(
                kind: entry.rule.kind, rule: UInt8(index),
                includesFields: !entry.rule.fields.isEmpty)
        }
        return WakeChoice()
    }
}

/// Whether a message wakes phones, and by which rule.
struct WakeChoice: BitwiseCopyable {
    /// `nil`: it wakes nobody.
    var kind: WakeKind?
    /// Index of the rule; `nil` when none fits.
    var rule: UInt8?
    /// True when fields of the payload go into the notification.
    var includesFields = false
}
