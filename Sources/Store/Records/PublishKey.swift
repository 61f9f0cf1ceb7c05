/// A key under which a message was published, and the answer that every repeat gets.
public struct PublishKey: Hashable, Sendable, BitwiseCopyable {
    /// Names the publisher and its key.
    public var key: UInt128
    /// Of what was asked for; a repeat that asks for something else has another one.
    public var digest: UInt128
    /// The identifier that was made for the message.
    public var messageID: UInt128
    /// The bucket that it is dropped with. Numbers of buckets only rise.
    public var bucket: UInt64
    public var matched: UInt32
    public var online: UInt32
    public var queued: UInt32
    public var dropped: UInt32

    public init(
        key: UInt128, digest: UInt128, messageID: UInt128, bucket: UInt64, matched: UInt32,
        online: UInt32, queued: UInt32, dropped: UInt32
    ) {
        self.key = key
        self.digest = digest
        self.messageID = messageID
        self.bucket = bucket
        self.matched = matched
        self.online = online
        self.queued = queued
        self.dropped = dropped
    }
}
