import Structures

/// Finds the record that a session has at a node of the trie, or in a group, if it has many records.
///
/// The records of a session with few are looked through, so that most sessions cost nothing here. Each
/// record of one with more stands in a table, at 11 to 21 bytes: without it, to find that there is none
/// would cost as many steps as the session has records and the node has subscribers, whichever is less.
struct SessionIndex: ~Copyable {
    /// Records of one session that are looked through.
    static var mostWalked: UInt32 { 64 }

    private var records = HashIndex()
    private let hash: KeyedHash

    init(hash: KeyedHash) { self.hash = hash }

    var count: Int { records.count }

    /// The record for which `isMatch` holds; it is asked of those of this session and place, and rarely
    /// of another.
    func find(_ session: UInt32, _ place: UInt32, where isMatch: (UInt32) -> Bool) -> UInt32? {
        records.find(key(session, place), where: isMatch)
    }

    mutating func insert(_ session: UInt32, _ place: UInt32, _ record: UInt32) {
        records.insert(key(session, place), record)
    }

    mutating func remove(_ session: UInt32, _ place: UInt32, _ record: UInt32) {
        records.remove(key(session, place), record)
    }

    private func key(_ session: UInt32, _ place: UInt32) -> UInt64 {
        withUnsafeBytes(of: UInt64(session) << 32 | UInt64(place)) { hash($0) }
    }
}
