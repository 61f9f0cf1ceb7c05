/// Records of tags and pushes.
extension WriteBatch {
    public mutating func tag(
        _ tag: UnsafeRawBufferPointer, of clientIdentifier: UnsafeRawBufferPointer, isSet: Bool
    ) {
        guard begin(.tag) else { return }
        put(isSet ? 1 : 0 as UInt8)
        put(clientIdentifier)
        put(tag)
    }

    /// The progress of a new push is none, whatever ``StoredPush/progress`` is.
    public mutating func push(_ push: StoredPush) {
        guard begin(.push) else { return }
        put(push.number)
        put(push.createdMs)
        put(push.dueMs)
        put(push.expiresInMs)
        put(push.spreadMs)
        put(push.seed)
        put(push.qos)
        put(push.isFollowed ? 1 : 0 as UInt8)
        push.pushID.withUnsafeBytes { put($0) }
        push.topic.withUnsafeBytes { put($0) }
        push.payload.withUnsafeBytes { put($0) }
        push.target.withUnsafeBytes { put($0) }
    }

    public mutating func pushProgress(_ progress: PushProgress) {
        guard begin(.pushProgress) else { return }
        put(progress.number)
        put(progress.state)
        put(progress.cursor)
        put(progress.matched)
        put(progress.reached)
        put(progress.online)
        put(progress.queued)
        put(progress.dropped)
        put(progress.withoutSession)
        put(progress.denied)
        put(progress.beganMs)
        put(progress.endedMs)
    }

    public mutating func pushRemoved(_ number: UInt64) {
        guard begin(.pushRemoved) else { return }
        put(number)
    }
}
