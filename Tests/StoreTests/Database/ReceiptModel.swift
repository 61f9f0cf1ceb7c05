@testable import Store

/// Receipts in dictionaries.
struct ReceiptModel: Equatable {
    struct Receiver: Equatable {
        var stored: StoredReceiver
        var end: ReceiverEnd?
    }

    private(set) var receipts: [UInt64: StoredReceipt] = [:]
    private(set) var receivers: [UInt64: [UInt32: Receiver]] = [:]
    private(set) var progress = ReceiptProgress()

    mutating func add(_ receipt: StoredReceipt) { receipts[receipt.number] = receipt }

    mutating func add(_ receiver: StoredReceiver) {
        receivers[receiver.receipt, default: [:]][receiver.place] = Receiver(stored: receiver)
    }

    /// The end with the outcome 0 is none.
    mutating func end(_ end: ReceiverEnd) {
        if end.outcome != 0 { receivers[end.receipt]?[end.place]?.end = end }
    }

    mutating func raise(to other: ReceiptProgress) {
        progress.begin = max(progress.begin, other.begin)
        progress.lastEvent = max(progress.lastEvent, other.lastEvent)
        progress.taken = max(progress.taken, other.taken)
        receipts = receipts.filter { $0.key >= progress.begin }
        receivers = receivers.filter { $0.key >= progress.begin }
    }
}

extension ReceiptModel {
    init(reading database: Database) throws {
        var model = ReceiptModel()
        model.progress = try database.receiptProgress()
        try database.forEachReceipt(from: 0) { model.add($0) }
        try database.forEachReceiver(from: 0) { receiver, end in
            model.add(receiver)
            model.end(end)
        }
        self = model
    }
}
