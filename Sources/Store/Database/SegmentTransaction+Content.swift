import CSQLite

/// Writes the content of messages, and deletes content to which no row refers any more.
extension SegmentTransaction {
    /// The payload begins within this many bytes of the start of a topic of at most 65,535 bytes.
    private static let largestGap = 65_600

    /// Writes the messages that get a row in `messages`.
    func writeMessages(_ content: Content) throws(StoreFailure) {
        for (message, (references, isShared)) in zip(
            changes.messages, zip(placed.references, placed.isShared))
        where isShared && references > 0 {
            if Int(message.payload.count) > SegmentContent.largestBound {
                let topic = BorrowedBlob(try content(message.topic))
                let payload = ZeroBlob(count: Int(message.payload.count))
                try insert(message, references, topic, payload)
                try writeLargePayload(of: message, content)
            } else {
                let (topic, payload) = try read(message, content)
                try insert(message, references, topic, payload)
            }
        }
    }

    private func insert(
        _ message: SegmentChanges.SurvivingMessage, _ references: UInt32, _ topic: BorrowedBlob,
        _ payload: some SQLiteBindable
    ) throws(StoreFailure) {
        try database.writer.insertMessage.run(
            message.number, Int64(references), message.qos, message.retain, message.expiresAtMs,
            topic, payload)
    }

    /// Topic and payload of a message; valid until the next call of `content`.
    func read(
        _ message: SegmentChanges.SurvivingMessage, _ content: Content
    ) throws(StoreFailure) -> (topic: BorrowedBlob, payload: BorrowedBlob) {
        // Both lie in one record of the journal, the topic first, so that one read gets both.
        let (topic, payload) = (message.topic, message.payload)
        let gap = Int(payload.offset) - Int(topic.offset)
        precondition(
            topic.segment == payload.segment && gap >= Int(topic.count) && gap <= Self.largestGap,
            "message \(message.number): its payload does not follow its topic")
        let count = gap + Int(payload.count)
        let bytes = try content(
            SegmentChanges.Location(
                segment: topic.segment, offset: topic.offset, count: UInt32(count)))
        precondition(
            bytes.count == count, "asked the journal for \(count) bytes, got \(bytes.count)")
        return (
            BorrowedBlob(UnsafeRawBufferPointer(rebasing: bytes[..<Int(topic.count)])),
            BorrowedBlob(UnsafeRawBufferPointer(rebasing: bytes[gap...]))
        )
    }

    /// Fills the payload of a row that was just inserted, slice by slice.
    private func writeLargePayload(
        of message: SegmentChanges.SurvivingMessage, _ content: Content
    ) throws(StoreFailure) {
        var blob: OpaquePointer?
        guard
            sqlite3_blob_open(
                database.connection.handle, "main", "messages", "payload",
                Int64(clamping: message.number), 1, &blob) == SQLITE_OK
        else { throw database.connection.failure("write") }
        defer { sqlite3_blob_close(blob) }
        var done: UInt32 = 0
        while done < message.payload.count {
            let count = min(UInt32(SegmentContent.largestBound), message.payload.count - done)
            let slice = try content(
                SegmentChanges.Location(
                    segment: message.payload.segment, offset: message.payload.offset + done,
                    count: count))
            guard
                sqlite3_blob_write(blob, slice.baseAddress, Int32(count), Int32(done)) == SQLITE_OK
            else { throw database.connection.failure("write") }
            done += count
        }
    }

    /// Subtracts the dropped references from their messages, and deletes messages without
    /// references.
    mutating func settleReferences() throws(StoreFailure) {
        droppedReferences.sort()
        var index = 0
        while index < droppedReferences.count {
            let number = droppedReferences[index]
            var end = index + 1
            while end < droppedReferences.count, droppedReferences[end] == number { end += 1 }
            let count = Int64(end - index)
            index = end
            try database.writer.deleteMessage.run(number, count)
            guard database.writer.deleteMessage.changedRows == 0 else { continue }
            try database.writer.subtractReferences.run(number, count)
        }
        droppedReferences.removeAll(keepingCapacity: true)
    }
}
