import Structures

/// The writes of one turn as one run of bytes: records, in groups that end with a ticket.
///
/// A group becomes durable as a whole or not at all, and its ticket completes when it has. The
/// format is the store's own and made to be written as it is: each record is a kind byte, its
/// fixed fields little-endian, and its strings behind a 32-bit length. A store that keeps nothing
/// (`isRecording` false) leaves the bytes out and still hands out tickets.
public struct WriteBatch: ~Copyable {
    private enum Kind: UInt8 {
        case commit = 1
        case session, sessionRemoved, subscription, subscriptionRemoved, message, queued, released
        case finished, inbound, inboundRemoved, retained, retainedRemoved, will, willRemoved
        case sequence
    }

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
        session: UInt64, position: UInt64, message: UInt64, qos: UInt8, retain: Bool
    ) {
        guard begin(.queued) else { return }
        put(session)
        put(position)
        put(message)
        bytes.append(qos)
        bytes.append(retain ? 1 : 0)
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

    /// The groups of the batch, in order; records without a ticket come last with `nil`.
    public func groups() -> [(ticket: UInt64?, records: [StoreRecord])] {
        var reader = Reader(bytes: bytes)
        var groups: [(ticket: UInt64?, records: [StoreRecord])] = []
        var records: [StoreRecord] = []
        while let kind = reader.kind() {
            if kind == .commit {
                groups.append((reader.integer(), records))
                records = []
            } else {
                records.append(reader.record(kind))
            }
        }
        if !records.isEmpty { groups.append((nil, records)) }
        return groups
    }

    private mutating func begin(_ kind: Kind) -> Bool {
        hasOpenGroup = true
        if isRecording { put(kind) }
        return isRecording
    }

    private mutating func put(_ kind: Kind) { bytes.append(kind.rawValue) }

    private mutating func put(_ value: UInt64) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    private mutating func put(_ string: UnsafeRawBufferPointer) {
        withUnsafeBytes(of: UInt32(string.count).littleEndian) { bytes.append(contentsOf: $0) }
        bytes.append(contentsOf: string)
    }

    /// Reads what the batch itself wrote, so a malformed byte is our own mistake and traps.
    private struct Reader {
        let bytes: [UInt8]
        var offset = 0

        mutating func kind() -> Kind? {
            guard offset < bytes.count else { return nil }
            guard let kind = Kind(rawValue: byte()) else {
                preconditionFailure("no record begins at byte \(offset - 1)")
            }
            return kind
        }

        mutating func record(_ kind: Kind) -> StoreRecord {
            switch kind {
            case .commit:
                preconditionFailure("a commit is no record")
            case .session:
                let number = integer()
                let identifier = string()
                let hasUserName = byte() != 0
                let userName = string()
                return .session(
                    number, clientIdentifier: identifier, userName: hasUserName ? userName : nil)
            case .sessionRemoved: return .sessionRemoved(integer())
            case .subscription:
                return .subscription(integer(), filter: string(), qos: byte())
            case .subscriptionRemoved: return .subscriptionRemoved(integer(), filter: string())
            case .message:
                let number = integer()
                let expiry = Int64(bitPattern: integer())
                let qos = byte()
                let retain = byte() != 0
                return .message(
                    number, topic: string(), payload: string(), qos: qos, retain: retain,
                    expiresAtMs: expiry)
            case .queued:
                return .queued(
                    session: integer(), position: integer(), message: integer(), qos: byte(),
                    retain: byte() != 0)
            case .released: return .released(session: integer(), position: integer())
            case .finished: return .finished(session: integer(), position: integer())
            case .inbound:
                return .inbound(
                    session: integer(), packetIdentifier: UInt16(truncatingIfNeeded: integer()))
            case .inboundRemoved:
                return .inboundRemoved(
                    session: integer(), packetIdentifier: UInt16(truncatingIfNeeded: integer()))
            case .retained: return .retained(message: integer())
            case .retainedRemoved: return .retainedRemoved(topic: string())
            case .will: return .will(session: integer(), message: integer())
            case .willRemoved: return .willRemoved(session: integer())
            case .sequence:
                let number = integer()
                return .sequence(channel: string(), number: number)
            }
        }

        mutating func byte() -> UInt8 {
            offset += 1
            return bytes[offset - 1]
        }

        mutating func integer() -> UInt64 {
            var value: UInt64 = 0
            for index in 0..<8 { value |= UInt64(bytes[offset + index]) << UInt64(8 * index) }
            offset += 8
            return value
        }

        mutating func string() -> [UInt8] {
            var count = 0
            for index in 0..<4 { count |= Int(bytes[offset + index]) << (8 * index) }
            offset += 4 + count
            return [UInt8](bytes[offset - count..<offset])
        }
    }
}
