/// A message's topic, payload and identifier in the journal. They follow each other, so that one
/// read gets them.
struct ContentRun {
    /// The payload begins within this many bytes of the start of a topic of at most 65,535 bytes.
    private static let largestGap = 65_600

    /// From the topic's first byte to the last one of the payload or the identifier.
    let location: SegmentChanges.Location
    private let topicCount: Int
    private let payload: Range<Int>
    /// Where the identifier begins; the end of the run without one.
    private let messageIDOffset: Int

    init(
        topic: SegmentChanges.Location, payload: SegmentChanges.Location,
        messageID: SegmentChanges.Location?
    ) {
        let begin = Int(payload.offset) - Int(topic.offset)
        precondition(
            topic.segment == payload.segment && begin >= Int(topic.count)
                && begin <= Self.largestGap, "a message's payload does not follow its topic")
        let payloadEnd = begin + Int(payload.count)
        var (messageIDOffset, end) = (payloadEnd, payloadEnd)
        if let messageID {
            messageIDOffset = Int(messageID.offset) - Int(topic.offset)
            precondition(
                messageID.segment == topic.segment
                    && messageIDOffset == payloadEnd + WriteBatch.bytesBeforeMessageID,
                "a message's identifier does not follow its payload")
            end = messageIDOffset + Int(messageID.count)
        }
        location = SegmentChanges.Location(
            segment: topic.segment, offset: topic.offset, count: UInt32(end))
        topicCount = Int(topic.count)
        self.payload = begin..<payloadEnd
        self.messageIDOffset = messageIDOffset
    }

    /// The parts in the bytes of ``location``; without an identifier, that one is empty.
    func parts(
        of bytes: UnsafeRawBufferPointer
    ) -> (
        topic: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer,
        messageID: UnsafeRawBufferPointer
    ) {
        precondition(
            bytes.count == Int(location.count),
            "asked the journal for \(location.count) bytes, got \(bytes.count)")
        return (
            UnsafeRawBufferPointer(rebasing: bytes[..<topicCount]),
            UnsafeRawBufferPointer(rebasing: bytes[payload]),
            UnsafeRawBufferPointer(rebasing: bytes[messageIDOffset...])
        )
    }
}
