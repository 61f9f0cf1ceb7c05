import Store

/// Receipts in dictionaries.
package struct ReceiptModel: Equatable {
    package struct Receiver: Equatable {
        package var stored: StoredReceiver
        package var end: ReceiverEnd?
    }

    package private(set) var receipts: [UInt64: StoredReceipt] = [:]
    package private(set) var receivers: [UInt64: [UInt32: Receiver]] = [:]
    package private(set) var progress = ReceiptProgress()

    package init() {}

    package mutating func add(_ receipt: StoredReceipt) { receipts[receipt.number] = receipt }

    package mutating func add(_ receiver: StoredReceiver) {
        receivers[receiver.receipt, default: [:]][receiver.place] = Receiver(stored: receiver)
    }

    /// The end with the outcome 0 is none.
    package mutating func end(_ end: ReceiverEnd) {
        if end.outcome != 0 { receivers[end.receipt]?[end.place]?.end = end }
    }

    package mutating func raise(to other: ReceiptProgress) {
        progress.begin = max(progress.begin, other.begin)
        progress.lastEvent = max(progress.lastEvent, other.lastEvent)
        progress.taken = max(progress.taken, other.taken)
        receipts = receipts.filter { $0.key >= progress.begin }
        receivers = receivers.filter { $0.key >= progress.begin }
    }
}
