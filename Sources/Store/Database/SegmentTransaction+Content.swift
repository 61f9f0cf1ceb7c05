import CSQLite

/// Writes the content of messages, and deletes content to which no row refers any more.
extension SegmentTransaction {
    /// Writes the messages that get a row in `messages`.
    func writeMessages(_ content: Content) throws(StoreFailure) {
        for (message, (references, isShared)) in zip(
            changes.messages, zip(placed.references, placed.isShared))
        where isShared && references > 0 {
            if Int(message.payload.count) > SegmentContent.largestBound {
                var messageID: [UInt8]?
                if let place = message.messageID { messageID = [UInt8](try content(place)) }
                let topic = BorrowedBlob(try content(message.topic))
                let payload = ZeroBlob(count: Int(message.payload.count))
                try insert(message, references, topic, payload, messageID)
                try writeLargePayload(of: message, content)
            } else {
                let (topic, payload, messageID) = try read(message, content)
                try insert(message, references, topic, payload, messageID)
            }
        }
    }

    private func insert(
        _ message: SegmentChanges.SurvivingMessage, _ references: UInt32, _ topic: BorrowedBlob,
        _ payload: some SQLiteBindable, _ messageID: some SQLiteBindable
    ) throws(StoreFailure) {
        try database.writer.insertMessage.run(
            message.number, Int64(references), message.qos, message.retain, message.expiresAtMs,
            topic, payload, messageID)
    }

    /// The parts of a message; valid until the next call of `content`. A message without an
    /// identifier has `nil`.
    func read(
        _ message: SegmentChanges.SurvivingMessage, _ content: Content
    ) throws(StoreFailure) -> (
        topic: BorrowedBlob, payload: BorrowedBlob, messageID: BorrowedBlob?
    ) {
        let run = ContentRun(
            topic: message.topic, payload: message.payload, messageID: message.messageID)
        let parts = run.parts(of: try content(run.location))
        return (
            BorrowedBlob(parts.topic), BorrowedBlob(parts.payload),
            parts.messageID.isEmpty ? nil : BorrowedBlob(parts.messageID)
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
