import Structures

/// Finds a session's record at a node of the subscription trie, or in a shared group, if the
/// session has many records.
///
/// The records of a session with few are searched one by one, so that most sessions cost nothing
/// here. A session with more than ``mostWalked`` records has all of them in a hash table, at 11 to
/// 21 bytes each. Without the table, finding that a record is missing would take as many steps as
/// the session has records or the node has subscribers, whichever is less.
struct SessionIndex: ~Copyable {
    /// The largest number of records of one session that are searched one by one.
    static var mostWalked: UInt32 { 64 }

    private var records = HashIndex()
    private let hash: KeyedHash

    init(hash: KeyedHash) { self.hash = hash }

    var count: Int { records.count }

    /// The record for which `isMatch` is true. It is asked about records of this session and place,
    /// and rarely, when hashes collide, about another.
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
