/// Receipts in the journal.
extension JournalOverlay {
    /// Applies a record of receipts; other records are none of them.
    func applyReceipt(_ record: RecordView, _ bytes: UnsafeRawBufferPointer) {
        func text(_ range: RecordView.Bytes) -> [UInt8] {
            [UInt8](bytes[range.offset..<range.offset + range.count])
        }
        active.weight += 1
        switch record {
        case .receipt(let number, let atMs, let messageID, let topic):
            active.receipts.receipts.append(
                StoredReceipt(
                    number: number, atMs: atMs, messageID: text(messageID), topic: text(topic)))
        case .receiptReceiver(let receipt, let place, let session, let position, let identifier):
            active.receipts.receivers.append(
                StoredReceiver(
                    receipt: receipt, place: place, session: session, position: position,
                    clientIdentifier: text(identifier)))
        case .receiptEnded(let end): active.receipts.ends.append(end)
        case .receiptProgress(let progress): active.receipts.progress.raise(to: progress)
        default: preconditionFailure("a record of receipts is \(record)")
        }
    }

    /// The receipts of all segments that the database does not have, oldest first.
    private var receiptChanges: [ReceiptChanges] { (sealed + [active]).map(\.receipts) }

    /// Hands receipts to `visitor`, those of the database first. Dropped ones are left out.
    func restoreReceipts(
        _ database: Database, _ visitor: inout (some StoreVisitor & ~Copyable)
    ) throws(StoreFailure) {
        var progress = try database.receiptProgress()
        var ends: [ReceiverPlace: ReceiverEnd] = [:]
        for changes in receiptChanges {
            progress.raise(to: changes.progress)
            for end in changes.ends {
                ends[ReceiverPlace(receipt: end.receipt, place: end.place)] = end
            }
        }
        let begin = progress.begin
        visitor.visit(progress)
        try database.forEachReceipt(from: begin) { visitor.visit($0) }
        for changes in receiptChanges {
            for receipt in changes.receipts where receipt.number >= begin { visitor.visit(receipt) }
        }
        try database.forEachReceiver(from: begin) { receiver, end in
            visitor.visit(
                receiver,
                ends[ReceiverPlace(receipt: receiver.receipt, place: receiver.place)] ?? end)
        }
        for changes in receiptChanges {
            for receiver in changes.receivers where receiver.receipt >= begin {
                let place = ReceiverPlace(receipt: receiver.receipt, place: receiver.place)
                visitor.visit(
                    receiver,
                    ends[place]
                        ?? ReceiverEnd(
                            receipt: place.receipt, place: place.place, outcome: 0, reason: 0,
                            atMs: 0, event: 0))
            }
        }
    }
}

private struct ReceiverPlace: Hashable {
    var receipt: UInt64
    var place: UInt32
}
