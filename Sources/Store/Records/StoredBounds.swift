/// The bounds of what a broker stores.
///
/// Journal and database have checksums, but another program may write a row that no broker writes: a
/// topic longer than a packet holds, a number that cannot be counted on from. Such a row is left where
/// it is and told, and nobody gets it: the values of a running broker could not hold it.
enum StoredBounds {
    /// Bytes of a topic, a filter, a client identifier or a user name (section 1.5.3).
    static let mostText = 65_535
    /// Bytes of a payload: those of the largest packet (section 2.2.3).
    static let mostPayload = 268_435_455
    static let mostMessageID = 255
    /// Numbers of sessions, messages and positions stay below. SQLite holds twice as much.
    static let numbers: UInt64 = 1 << 62
    /// UNIX times in milliseconds are no farther from 1970, so that a sum of two does not overflow.
    static let farthestTime: Int64 = 1 << 61
    /// The most positions and messages of one queue, with room to count on.
    static let mostMessages = Int(Int32.max)
    /// The most bytes of one queue, or of one of its messages.
    static let mostBytes = 1 << 50

    static func isText(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bytes.count <= mostText
    }

    static func isTime(_ milliseconds: Int64) -> Bool {
        (-farthestTime...farthestTime).contains(milliseconds)
    }

    /// A number of bytes that a row names: the nearest possible one.
    static func bytes(_ stored: Int64) -> Int { Int(min(max(0, stored), Int64(mostBytes))) }
}

extension StoredSession {
    /// True for a session that a broker may have stored.
    var isSound: Bool {
        number > 0 && number < StoredBounds.numbers && StoredBounds.isText(clientID)
            && (userName?.count ?? 0) <= StoredBounds.mostText
            && StoredBounds.isTime(detachedSinceMs) && horizon < StoredBounds.numbers
            && end < StoredBounds.numbers
            && max(end, horizon) - horizon <= UInt64(StoredBounds.mostMessages)
            && (0...StoredBounds.mostMessages).contains(waitingMessages)
            && (0...StoredBounds.mostBytes).contains(waitingBytes)
    }
}

extension StoredMessage {
    /// True for a message that a broker may have stored.
    var isSound: Bool {
        StoredBounds.isText(topic) && payload.count <= StoredBounds.mostPayload
            && messageID.count <= StoredBounds.mostMessageID && StoredBounds.isTime(expiresAtMs)
    }

    /// True for the message of a released row, which has no content any more.
    var isEmpty: Bool { topic.isEmpty && payload.isEmpty && messageID.isEmpty }
}

/// Rows that make no sense, by table.
struct LostRows {
    private var counts: [String: Int] = [:]

    mutating func add(_ table: String) { counts[table, default: 0] += 1 }

    /// Lines for people.
    var lines: [String] {
        counts.sorted { $0.key < $1.key }.map { table, count in
            "\(count) rows of the table \(table) in the database hold what no broker writes; they "
                + "are left there, and what they held is lost"
        }
    }
}
