import BrokerCore
import Store

/// Restores what features have stored, after the sessions that it belongs to.
extension Shard: StoreVisitor {
    public mutating func visit(channel: UnsafeRawBufferPointer, number: UInt64) {
        features.requests.restore(channel: [UInt8](channel), number: number)
    }

    public mutating func visit(publishKeysFrom bucket: UInt64) {
        features.publishKeys.restore(from: bucket)
    }

    public mutating func visit(_ key: PublishKey) { features.publishKeys.restore(key) }

    public mutating func visit(_ progress: ReceiptProgress) { features.receipts.restore(progress) }

    public mutating func visit(_ receipt: StoredReceipt) {
        features.receipts.restore(receipt, pool: pool)
    }

    public mutating func visit(_ receiver: StoredReceiver, _ end: ReceiverEnd) {
        restoreReceiver(receiver, end)
    }

    public mutating func visit(lastScheduled: UInt64) {
        features.scheduled.restore(lastNumber: lastScheduled)
    }

    public mutating func visit(_ stored: StoredScheduled, dueMs: Int64) {
        var stored = stored
        stored.dueMs = dueMs
        features.scheduled.insert(stored, pool: pool)
    }

    public mutating func visit(_ position: StoredCollapsible) { restoreCollapsible(position) }

    public mutating func visit(_ tag: StoredTag) {
        tag.clientIdentifier.withUnsafeBytes { client in
            tag.tag.withUnsafeBytes { _ = features.tagged.add($0, to: client, pool: pool) }
        }
    }

    public mutating func visit(lastPush: UInt64) { features.pushes.restore(lastNumber: lastPush) }

    public mutating func visit(_ push: StoredPush) { restorePush(push) }

    public mutating func visit(_ device: StoredDevice) { restoreDevice(device) }
}
