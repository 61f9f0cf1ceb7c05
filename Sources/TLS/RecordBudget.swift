/// Bounds what a peer may cost the broker without sending data.
struct RecordBudget: BitwiseCopyable {
    typealias Alert = SecureChannel.Alert

    /// The most records in a row without data. A peer that sends more only keeps the broker busy.
    private static var mostRecordsWithoutData: UInt8 { 32 }
    /// A KeyUpdate costs as much as a hundred small records. After a key has opened ``fewRecords``
    /// the peer may change it. Earlier changes are hasty: a peer may make this many at once, and
    /// one more every ``keyUpdateSeconds``.
    private static var mostHastyKeyUpdates: UInt8 { 32 }
    private static var fewRecords: UInt64 { 1_024 }
    private static var keyUpdateSeconds: UInt32 { 10 }

    private var recordsWithoutData: UInt8 = 0
    private var hastyKeyUpdates: UInt8 = 0
    /// Time on the clock of ``RecordCiphers`` up to which elapsed time has been set against hasty
    /// KeyUpdates.
    private var countedAt: UInt32 = 0

    mutating func noteData() { recordsWithoutData = 0 }

    mutating func takeRecordWithoutData() throws(Alert) {
        recordsWithoutData += 1
        guard recordsWithoutData <= Self.mostRecordsWithoutData else { throw .unexpectedMessage }
    }

    /// Takes a KeyUpdate that came after so many records of its key.
    mutating func takeKeyUpdate(afterRecords records: UInt64, at now: UInt32) throws(Alert) {
        guard records < Self.fewRecords else { return }
        let regained = (now &- countedAt) / Self.keyUpdateSeconds
        countedAt &+= regained &* Self.keyUpdateSeconds
        hastyKeyUpdates -= UInt8(min(UInt32(hastyKeyUpdates), regained))
        hastyKeyUpdates += 1
        guard hastyKeyUpdates <= Self.mostHastyKeyUpdates else { throw .unexpectedMessage }
    }
}
