/// Records of receipts.
extension WriteBatch {
    public mutating func receipt(
        _ number: UInt64, atMs: Int64, messageID: UnsafeRawBufferPointer,
        topic: UnsafeRawBufferPointer
    ) {
        guard begin(.receipt) else { return }
        put(number)
        put(atMs)
        put(messageID)
        put(topic)
    }

    public mutating func receiptReceiver(
        receipt: UInt64, place: UInt32, session: UInt64, position: UInt64,
        clientIdentifier: UnsafeRawBufferPointer
    ) {
        guard begin(.receiptReceiver) else { return }
        put(receipt)
        put(place)
        put(session)
        put(position)
        put(clientIdentifier)
    }

    public mutating func receiptEnded(_ end: ReceiverEnd) {
        guard begin(.receiptEnded) else { return }
        put(end.receipt)
        put(end.place)
        put(end.outcome)
        put(end.reason)
        put(end.atMs)
        put(end.event)
    }

    public mutating func receiptProgress(_ progress: ReceiptProgress) {
        guard begin(.receiptProgress) else { return }
        put(progress.begin)
        put(progress.lastEvent)
        put(progress.taken)
    }
}
