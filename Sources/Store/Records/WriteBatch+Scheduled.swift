/// Records of scheduled messages.
extension WriteBatch {
    public mutating func scheduled(_ message: StoredScheduled) {
        guard begin(.scheduled) else { return }
        put(message.number)
        put(message.dueMs)
        put(message.expiresInMs)
        put(message.qos)
        put(message.retain ? 1 : 0 as UInt8)
        put(message.isFollowed ? 1 : 0 as UInt8)
        message.messageID.withUnsafeBytes { put($0) }
        message.topic.withUnsafeBytes { put($0) }
        message.payload.withUnsafeBytes { put($0) }
    }

    public mutating func scheduledMoved(_ number: UInt64, dueMs: Int64) {
        guard begin(.scheduledMoved) else { return }
        put(number)
        put(dueMs)
    }

    public mutating func scheduledEnded(_ number: UInt64) {
        guard begin(.scheduledEnded) else { return }
        put(number)
    }
}
