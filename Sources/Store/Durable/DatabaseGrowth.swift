/// Estimates, from above, by how much the database grows when it takes records.
///
/// SQLite fills its pages by half to two thirds where rows come between others, and a payload that
/// does not fit into a page beside other rows gets pages of its own, the last of which stays partly
/// empty.
enum DatabaseGrowth {
    /// The smallest payload that may get pages of its own, in bytes.
    static let smallestLarge = 2_000

    /// The room of a payload that gets pages of its own, with its row.
    static func largePayload(_ bytes: Int) -> Int {
        bytes + bytes / 32 + DatabaseFormat.pageBytes + smallestLarge
    }

    /// The room of records of so many bytes in the journal, without large payloads.
    static func records(_ bytes: Int) -> Int { bytes + bytes / 2 }

    /// The room of a row with a payload of any size, and of so many other bytes.
    static func message(payload: Int, other: Int) -> Int {
        payload >= smallestLarge
            ? largePayload(payload) + records(other) : records(payload + other)
    }
}

extension SegmentChanges {
    /// Bytes of a row's numbers.
    private static let rowBytes = 96

    /// By how much these changes make the database grow at most, in bytes.
    var growth: Int {
        var bytes = 0
        for message in messages {
            bytes += DatabaseGrowth.message(
                payload: Int(message.payload.count), other: Int(message.topic.count) + Self.rowBytes
            )
        }
        var others = queued.count * Self.rowBytes
        for session in newSessions {
            others += session.clientID.count + (session.userName?.count ?? 0) + Self.rowBytes
        }
        for change in subscriptions where change.grant != nil {
            others += change.filter.count + Self.rowBytes
        }
        for change in retained where change.message != nil {
            others += 2 * change.topic.count + Self.rowBytes
        }
        others += (wills.count + inbound.count) * Self.rowBytes
        others += facts.bytes.count + facts.entries.count * Self.rowBytes
        return bytes + DatabaseGrowth.records(others)
    }
}
