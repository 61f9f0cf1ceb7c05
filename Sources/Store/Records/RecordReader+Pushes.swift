/// A push in the bytes of a record.
public struct PushView: BitwiseCopyable {
    let number: UInt64
    let createdMs: Int64
    let dueMs: Int64
    let expiresInMs: Int64
    let spreadMs: Int64
    let seed: UInt64
    let qos: UInt8
    let isFollowed: Bool
    let pushID: RecordView.Bytes
    let topic: RecordView.Bytes
    let payload: RecordView.Bytes
    let target: RecordView.Bytes
}

extension RecordReader {
    mutating func tag() throws(DamagedRecord) -> RecordView {
        let isSet = try flag()
        let client = try string()
        return .tag(try string(), clientIdentifier: client, isSet: isSet)
    }

    mutating func push() throws(DamagedRecord) -> PushView {
        PushView(
            number: try integer(), createdMs: try integer(), dueMs: try integer(),
            expiresInMs: try integer(), spreadMs: try integer(), seed: try integer(),
            qos: try byte(), isFollowed: try flag(), pushID: try string(), topic: try string(),
            payload: try string(), target: try string())
    }

    mutating func pushProgress() throws(DamagedRecord) -> PushProgress {
        var progress = PushProgress(number: try integer())
        progress.state = try byte()
        progress.cursor = try integer()
        progress.matched = try integer()
        progress.reached = try integer()
        progress.online = try integer()
        progress.queued = try integer()
        progress.dropped = try integer()
        progress.withoutSession = try integer()
        progress.denied = try integer()
        progress.beganMs = try integer()
        progress.endedMs = try integer()
        return progress
    }
}

extension StoredPush {
    /// A copy of a record that owns its strings.
    init(_ view: PushView, _ text: (RecordView.Bytes) -> [UInt8]) {
        self.init(
            number: view.number, createdMs: view.createdMs, dueMs: view.dueMs,
            expiresInMs: view.expiresInMs, spreadMs: view.spreadMs, pushID: text(view.pushID),
            topic: text(view.topic), payload: text(view.payload), qos: view.qos,
            isFollowed: view.isFollowed, target: text(view.target), seed: view.seed)
    }
}
