import Structures

/// The writes of one turn as one run of bytes: records, in groups that end with a ticket.
///
/// A group becomes durable as a whole or not at all, and its ticket completes when it has. The
/// format is the store's own and made to be written as it is: each record is a kind byte, its
/// fixed fields little-endian, and its strings behind a 32-bit length. A store that keeps nothing
/// (`isRecording` false) leaves the bytes out and still hands out tickets.
public struct WriteBatch: ~Copyable {
    private var bytes: [UInt8] = []
    private let isRecording: Bool
    /// The ticket of the last group; tickets count from 1.
    public private(set) var lastTicket: UInt64
    /// Groups in this batch.
    public private(set) var groupCount = 0
    private var hasOpenGroup = false

    public init(isRecording: Bool, lastTicket: UInt64 = 0) {
        self.isRecording = isRecording
        self.lastTicket = lastTicket
    }

    public var isEmpty: Bool { groupCount == 0 && !hasOpenGroup }

    /// Ends the current group; what waits for it waits for the ticket.
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

    /// Records that nobody waits for stand in the last group.
    public var hasUncommittedRecords: Bool { hasOpenGroup }

    /// The tickets of the groups in this batch; `nil` when there are none.
    public var tickets: ClosedRange<UInt64>? {
        groupCount == 0 ? nil : lastTicket - UInt64(groupCount) + 1...lastTicket
    }

    /// Bytes of the records so far, submitted together; 0 in a store that keeps nothing.
    public var byteCount: Int { bytes.count }

    /// Takes the bytes out and clears the batch, which goes on in the buffer given.
    public mutating func takeBytes(leaving buffer: consuming [UInt8]) -> [UInt8] {
        buffer.removeAll(keepingCapacity: true)
        swap(&bytes, &buffer)
        groupCount = 0
        return buffer
    }

    /// Forgets the bytes that were submitted; tickets go on counting.
    public mutating func clear() {
        bytes.removeAll(keepingCapacity: bytes.count <= 4 * 1_024 * 1_024)
        groupCount = 0
    }

    // MARK: Records

    public mutating func session(
        _ number: UInt64, clientIdentifier: UnsafeRawBufferPointer,
        userName: UnsafeRawBufferPointer?
    ) {
        guard begin(.session) else { return }
        put(number)
        put(clientIdentifier)
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

    public mutating func subscription(
        _ session: UInt64, filter: UnsafeRawBufferPointer, qos: UInt8
    ) {
        guard begin(.subscription) else { return }
        put(session)
        put(filter)
        bytes.append(qos)
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

    /// Follows the record ``queued(session:position:message:qos:retain:isInWindow:)`` of the position.
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

    public mutating func sequence(channel: UnsafeRawBufferPointer, number: UInt64) {
        guard begin(.sequence) else { return }
        put(number)
        put(channel)
    }

    // MARK: Reading

    /// The bytes of the batch, as they are written; valid within the body.
    public func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        bytes.withUnsafeBytes(body)
    }

    /// The groups of the batch, in order; records without a ticket come last with `nil`.
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

    private mutating func begin(_ kind: RecordKind) -> Bool {
        hasOpenGroup = true
        if isRecording { put(kind) }
        return isRecording
    }

    private mutating func put(_ kind: RecordKind) { bytes.append(kind.rawValue) }

    private mutating func put(_ value: UInt64) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    private mutating func put(_ string: UnsafeRawBufferPointer) {
        withUnsafeBytes(of: UInt32(string.count).littleEndian) { bytes.append(contentsOf: $0) }
        bytes.append(contentsOf: string)
    }
}
