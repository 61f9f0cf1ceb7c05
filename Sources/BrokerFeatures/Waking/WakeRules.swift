import Authorization
import BrokerAPI
import BrokerCore
import TimeZones

/// The rules of the configuration, ready to be asked for each message.
struct WakeRules {
    private struct Entry {
        let filter: [UInt8]
        let rule: WakeRule
    }

    private var entries: [Entry] = []
    private var quieting: [Quieting] = []
    /// True when a rule drops messages in quiet hours, and when one has hours of its own.
    private(set) var dropsAny = false
    private(set) var hasOwnHours = false

    init(_ rules: [WakeRule]) {
        entries = rules.prefix(WakeRule.most).map {
            Entry(filter: Array($0.filter.utf8), rule: $0)
        }
        quieting = entries.map { Quieting($0.rule) }
        dropsAny = quieting.contains { $0.drops }
        hasOwnHours = quieting.contains { $0.own != nil }
    }

    /// When a rule's alerts are not told; `nil` stands for a message without a rule.
    func quieting(_ index: UInt8?) -> Quieting {
        guard let index, Int(index) < quieting.count else { return Quieting() }
        return quieting[Int(index)]
    }

    var isEmpty: Bool { entries.isEmpty }

    /// The rule of an index; `nil` when a reload has removed it.
    subscript(index: UInt8) -> WakeRule? {
        Int(index) < entries.count ? entries[Int(index)].rule : nil
    }

    /// The kind of wake for a message: as its publisher asks, or as the first rule whose filter fits its
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
                includesFields: entry.rule.readsPayload)
        }
        return WakeChoice()
    }
}

/// What quiet hours and caps are to the alerts of a rule.
struct Quieting: BitwiseCopyable {
    /// Hours of its own; `nil` for those of all rules.
    var own: QuietHours?
    var isOff = false
    var drops = false
    var isUncapped = false

    init() {}

    init(_ rule: WakeRule) {
        isUncapped = rule.isUncapped
        switch rule.quiet {
        case .usual: break
        case .off: isOff = true
        case .hours(let hours, let drops): (own, self.drops) = (hours, drops)
        }
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

extension WakeChoice {
    private static var known: UInt32 { 1 << 31 }
    private static var fieldsBit: UInt32 { 1 << 30 }
    private static var ruleBit: UInt32 { 1 << 29 }
    private static var kindBit: UInt32 { 1 << 28 }

    /// The choice that ``memo`` has made of another; `nil` for 0.
    init?(memo: UInt32) {
        guard memo & Self.known != 0 else { return nil }
        kind =
            memo & Self.kindBit == 0
            ? nil : WakeKind(rawValue: UInt8(truncatingIfNeeded: memo >> 8))
        rule = memo & Self.ruleBit == 0 ? nil : UInt8(truncatingIfNeeded: memo)
        includesFields = memo & Self.fieldsBit != 0
    }

    /// The choice in 32 bits, never 0, for ``RoutedMessage/memo``.
    var memo: UInt32 {
        var memo = Self.known | (includesFields ? Self.fieldsBit : 0)
        if let kind { memo |= Self.kindBit | UInt32(kind.rawValue) << 8 }
        if let rule { memo |= Self.ruleBit | UInt32(rule) }
        return memo
    }
}
