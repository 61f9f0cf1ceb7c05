import Store

/// The tables of what features keep. Numbers are part of the store's format and are never used
/// again. A start hands facts back by rising table, so a table stands after those that it needs.
extension FactTable {
    static var sequence: FactTable { FactTable(number: 1, name: "sequence") }
    static var publishKey: FactTable { FactTable(number: 2, name: "publish_key") }
    static var receiptBounds: FactTable { FactTable(number: 3, name: "receipt_bounds") }
    static var receipt: FactTable { FactTable(number: 4, name: "receipt") }
    static var scheduled: FactTable { FactTable(number: 5, name: "scheduled") }
    static var collapsible: FactTable { FactTable(number: 6, name: "collapsible") }
    static var tag: FactTable { FactTable(number: 7, name: "tag") }
    static var push: FactTable { FactTable(number: 8, name: "push") }
    static var device: FactTable { FactTable(number: 9, name: "device") }
    static var woken: FactTable { FactTable(number: 10, name: "woken") }

    /// All of them.
    public static var all: [FactTable] {
        [
            .sequence, .publishKey, .receiptBounds, .receipt, .scheduled, .collapsible, .tag,
            .push, .device, .woken,
        ]
    }
}
