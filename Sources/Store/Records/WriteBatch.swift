import Structures

/// The writes of one turn as bytes: records in groups, each of which ends with a ticket.
///
/// A group becomes durable as a whole or not at all, and then its ticket completes. The bytes are
/// written to the journal as they are: a record is a kind byte, then its fixed fields in
/// little-endian order, and each string behind a length of 32 bits. With `isRecording` false the
/// batch has no bytes and still assigns tickets.
public struct WriteBatch: ~Copyable {
    private var bytes: [UInt8] = []
    private let isRecording: Bool
    /// The ticket of the last group; tickets count from 1.
    public private(set) var lastTicket: UInt64
    /// Number of groups in this batch.
    public private(set) var groupCount = 0
    private var hasOpenGroup = false
    /// Bytes of large payloads, and by how much the database grows by them.
    private var large = (bytes: 0, growth: 0)

    public init(isRecording: Bool, lastTicket: UInt64 = 0) {
        self.isRecording = isRecording
        self.lastTicket = lastTicket
    }

    public var isEmpty: Bool { groupCount == 0 && !hasOpenGroup }

    /// Ends the current group and returns its ticket, for everything that must wait for the group.
    public mutating func commit() -> UInt64 {
        lastTicket += 1
        groupCount += 1
        hasOpenGroup = false
        if isRecording {
            put(.commit)
            put(lastTicket)
        }
        return lastTicket
    }

    /// True when the last group has no ticket yet.
    public var hasUncommittedRecords: Bool { hasOpenGroup }

    /// The tickets of the groups in this batch; `nil` without groups.
    public var tickets: ClosedRange<UInt64>? {
        groupCount == 0 ? nil : lastTicket - UInt64(groupCount) + 1...lastTicket
    }

    /// Bytes of the records so far; 0 when `isRecording` is false.
    public var byteCount: Int { bytes.count }

    /// By how many bytes the database grows at most when it has these records.
    public var growth: Int { DatabaseGrowth.records(bytes.count - large.bytes) + large.growth }

    /// Takes the bytes out and clears the batch, which continues in the given buffer.
    public mutating func takeBytes(leaving buffer: consuming [UInt8]) -> [UInt8] {
        buffer.removeAll(keepingCapacity: true)
        swap(&bytes, &buffer)
        groupCount = 0
        large = (0, 0)
        return buffer
    }

    /// Drops the bytes, which were submitted. Tickets continue to count.
    public mutating func clear() {
        bytes.removeAll(keepingCapacity: bytes.count <= 4 * 1_024 * 1_024)
        groupCount = 0
        large = (0, 0)
    }

    // MARK: Records

    public mutating func session(
        _ number: UInt64, clientID: UnsafeRawBufferPointer,
        userName: UnsafeRawBufferPointer?
    ) {
        guard begin(.session) else { return }
        put(number)
        put(clientID)
        bytes.append(userName == nil ? 0 : 1)
        put(userName ?? UnsafeRawBufferPointer(start: nil, count: 0))
    }

    public mutating func sessionRemoved(_ number: UInt64) {
        guard begin(.sessionRemoved) else { return }
        put(number)
    }

    public mutating func sessionEnded(_ number: UInt64) {
        guard begin(.sessionEnded) else { return }
        put(number)
    }

    public mutating func attached(_ session: UInt64) {
        guard begin(.attached) else { return }
        put(session)
    }

    public mutating func detached(_ session: UInt64, sinceMs: Int64) {
        guard begin(.detached) else { return }
        put(session)
        put(UInt64(bitPattern: sinceMs))
    }

    /// `grant` is what the subscription was granted, in the broker's encoding, whose lowest two bits
    /// are the QoS.
    public mutating func subscription(
        _ session: UInt64, filter: UnsafeRawBufferPointer, grant: UInt32
    ) {
        guard begin(grant <= UInt8.max ? .subscription : .grantedSubscription) else { return }
        put(session)
        put(filter)
        if let byte = UInt8(exactly: grant) { bytes.append(byte) } else { put(grant) }
    }

    public mutating func subscriptionRemoved(_ session: UInt64, filter: UnsafeRawBufferPointer) {
        guard begin(.subscriptionRemoved) else { return }
        put(session)
        put(filter)
    }

    public mutating func message(
        _ number: UInt64, topic: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer,
        qos: UInt8, retain: Bool, expiresAtMs: Int64
    ) {
        guard begin(.message) else { return }
        put(number)
        put(UInt64(bitPattern: expiresAtMs))
        bytes.append(qos)
        bytes.append(retain ? 1 : 0)
        put(topic)
        put(payload)
        guard payload.count >= DatabaseGrowth.smallestLarge else { return }
        large.bytes += payload.count
        large.growth += DatabaseGrowth.largePayload(payload.count)
    }

    /// Bytes between the end of a message's payload and its identifier: the kind, the number and
    /// the identifier's length.
    static let bytesBeforeMessageID = 13

    /// Must follow the ``message(_:topic:payload:qos:retain:expiresAtMs:)`` of the same number at
    /// once. The identifier has 1 to 255 bytes.
    public mutating func named(_ number: UInt64, messageID: UnsafeRawBufferPointer) {
        guard begin(.named) else { return }
        put(number)
        put(messageID)
    }

    public mutating func queued(
        session: UInt64, position: UInt64, message: UInt64, qos: UInt8, retain: Bool,
        isInWindow: Bool
    ) {
        guard begin(.queued) else { return }
        put(session)
        put(position)
        put(message)
        bytes.append(qos)
        bytes.append(retain ? 1 : 0)
        bytes.append(isInWindow ? 1 : 0)
    }

    /// Must follow the ``queued(session:position:message:qos:retain:isInWindow:)`` of the same
    /// position.
    public mutating func shared(
        session: UInt64, position: UInt64, filter: UnsafeRawBufferPointer
    ) {
        guard begin(.shared) else { return }
        put(session)
        put(position)
        put(filter)
    }

    public mutating func horizon(session: UInt64, position: UInt64) {
        guard begin(.horizon) else { return }
        put(session)
        put(position)
    }

    /// PUBREC has come for a position. Without effect on a position that is done, or that has
    /// another QoS than 2.
    public mutating func released(session: UInt64, position: UInt64) {
        guard begin(.released) else { return }
        put(session)
        put(position)
    }

    public mutating func finished(session: UInt64, position: UInt64) {
        guard begin(.finished) else { return }
        put(session)
        put(position)
    }

    public mutating func inbound(session: UInt64, packetIdentifier: UInt16) {
        guard begin(.inbound) else { return }
        put(session)
        put(UInt64(packetIdentifier))
    }

    public mutating func inboundRemoved(session: UInt64, packetIdentifier: UInt16) {
        guard begin(.inboundRemoved) else { return }
        put(session)
        put(UInt64(packetIdentifier))
    }

    public mutating func retained(message: UInt64) {
        guard begin(.retained) else { return }
        put(message)
    }

    public mutating func retainedRemoved(topic: UnsafeRawBufferPointer) {
        guard begin(.retainedRemoved) else { return }
        put(topic)
    }

    public mutating func will(session: UInt64, message: UInt64) {
        guard begin(.will) else { return }
        put(session)
        put(message)
    }

    public mutating func willRemoved(session: UInt64) {
        guard begin(.willRemoved) else { return }
        put(session)
    }

    // MARK: Reading

    /// Lends the bytes of the batch; valid only during the call.
    public func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        bytes.withUnsafeBytes(body)
    }

    /// The groups of the batch in order. Records without a ticket come last, with `nil`.
    public func groups() -> [(ticket: UInt64?, records: [StoreRecord])] {
        bytes.withUnsafeBytes { bytes in
            var groups: [(ticket: UInt64?, records: [StoreRecord])] = []
            var records: [StoreRecord] = []
            var reader = RecordReader(bytes)
            do throws(DamagedRecord) {
                while let view = try reader.next() {
                    if let record = StoreRecord(view, in: bytes) {
                        records.append(record)
                    } else if case .commit(let ticket) = view {
                        groups.append((ticket, records))
                        records = []
                    }
                }
            } catch {
                // The batch wrote these bytes itself.
                preconditionFailure("no record begins at byte \(error.offset) of a batch")
            }
            if !records.isEmpty { groups.append((nil, records)) }
            return groups
        }
    }

    /// Has a part of a fact written straight into the bytes of the batch.
    mutating func write(_ body: (inout FactBytes) -> Void) {
        var buffer: [UInt8] = []
        swap(&bytes, &buffer)
        var writer = FactBytes(consume buffer)
        body(&writer)
        bytes = writer.finish()
    }

    mutating func begin(_ kind: RecordKind) -> Bool {
        hasOpenGroup = true
        if isRecording { put(kind) }
        return isRecording
    }

    private mutating func put(_ kind: RecordKind) { bytes.append(kind.rawValue) }

    mutating func put(_ value: some FixedWidthInteger & BitwiseCopyable) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func put(_ string: UnsafeRawBufferPointer) {
        put(UInt32(string.count))
        bytes.append(contentsOf: string)
    }
}
