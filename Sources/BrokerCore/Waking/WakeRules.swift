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

    /// Whom a message wakes: as its publisher asks, or else as the first rule whose filter fits its
    /// topic says; without both, nobody.
    func choice(for topic: UnsafeRawBufferPointer, _ request: WakeRequest) -> WakeChoice {
        var choice = choice(for: topic)
        switch request {
        case .byRules: break
        case .alert: choice.kind = .alert
        case .background: choice.kind = .background
        case .none: choice.kind = nil
        }
        return choice
    }

    private func choice(for topic: UnsafeRawBufferPointer) -> WakeChoice {
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
