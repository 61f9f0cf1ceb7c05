/// A record in its buffer: numbers, and ranges for its strings.
public enum RecordView: BitwiseCopyable {
    /// A range of the buffer.
    public struct Bytes: BitwiseCopyable, Sendable {
        public var offset: Int
        public var count: Int
    }

    /// End of a group, with its ticket.
    case commit(UInt64)
    case session(UInt64, clientID: Bytes, userName: Bytes?)
    case sessionRemoved(UInt64)
    case sessionEnded(UInt64)
    case attached(UInt64)
    case detached(UInt64, sinceMs: Int64)
    case subscription(UInt64, filter: Bytes, grant: UInt32)
    case subscriptionRemoved(UInt64, filter: Bytes)
    case message(
        UInt64, topic: Bytes, payload: Bytes, qos: UInt8, retain: Bool, expiresAtMs: Int64)
    case named(UInt64, messageID: Bytes)
    case queued(
        session: UInt64, position: UInt64, message: UInt64, qos: UInt8, retain: Bool,
        isInWindow: Bool)
    case shared(session: UInt64, position: UInt64, filter: Bytes)
    case horizon(session: UInt64, position: UInt64)
    case released(session: UInt64, position: UInt64)
    case finished(session: UInt64, position: UInt64)
    case inbound(session: UInt64, packetIdentifier: UInt16)
    case inboundRemoved(session: UInt64, packetIdentifier: UInt16)
    case retained(message: UInt64)
    case retainedRemoved(topic: Bytes)
    case will(session: UInt64, message: UInt64)
    case willRemoved(session: UInt64)
    case fact(FactPlace, value: Bytes, isNew: Bool)
    case factRemoved(FactPlace)
    case factsRemoved(table: UInt8, from: Bytes, below: Bytes)
    /// A record that versions before the present one wrote: its kind and its fields.
    case former(UInt8, Bytes)
}

/// Bytes that are not records: damage that a checksum did not detect, or another format.
public struct DamagedRecord: Error, Hashable, Sendable {
    /// Offset of the record in the buffer.
    public let offset: Int
}

enum RecordKind: UInt8 {
    case commit = 1
    case session, sessionRemoved, attached, detached, subscription, subscriptionRemoved, message
    case queued, horizon, released, finished, inbound, inboundRemoved, retained, retainedRemoved
    case will, willRemoved
    /// Since version 2 of the journal's format.
    case shared = 20
    case sessionEnded = 21
    /// A ``subscription`` whose grant does not fit into a byte.
    case grantedSubscription = 22
    /// Since version 3.
    case named = 40
    /// Since version 5.
    case fact = 64
    case newFact = 65
    case factRemoved = 66
    case factsRemoved = 67
}

/// Reads the records of a ``WriteBatch`` without copying or allocating.
public struct RecordReader {
    private let bytes: UnsafeRawBufferPointer
    public private(set) var offset = 0
    private var start = 0

    public init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    /// The next record; `nil` at the end.
    public mutating func next() throws(DamagedRecord) -> RecordView? {
        guard offset < bytes.count else { return nil }
        start = offset
        let code = try byte()
        guard let kind = RecordKind(rawValue: code) else { return try former(code) }
        switch kind {
        case .commit: return .commit(try integer())
        case .session:
            let number = try self.number()
            let identifier = try text()
            let hasUserName = try flag()
            let userName = try text()
            return .session(
                number, clientID: identifier, userName: hasUserName ? userName : nil)
        case .sessionRemoved: return .sessionRemoved(try number())
        case .sessionEnded: return .sessionEnded(try number())
        case .attached: return .attached(try number())
        case .detached:
            return .detached(try number(), sinceMs: Int64(bitPattern: try integer() as UInt64))
        case .subscription:
            return .subscription(try number(), filter: try text(), grant: UInt32(try byte()))
        case .grantedSubscription:
            return .subscription(try number(), filter: try text(), grant: try integer())
        case .subscriptionRemoved:
            return .subscriptionRemoved(try number(), filter: try text())
        case .message:
            let number = try self.number()
            let expiry = Int64(bitPattern: try integer() as UInt64)
            let qos = try byte()
            let retain = try flag()
            return .message(
                number, topic: try text(), payload: try payload(), qos: qos, retain: retain,
                expiresAtMs: expiry)
        case .named: return .named(try number(), messageID: try string())
        case .queued:
            return .queued(
                session: try number(), position: try number(), message: try number(),
                qos: try byte(), retain: try flag(), isInWindow: try flag())
        case .shared:
            return .shared(
                session: try number(), position: try number(), filter: try text())
        case .horizon: return .horizon(session: try number(), position: try number())
        case .released: return .released(session: try number(), position: try number())
        case .finished: return .finished(session: try number(), position: try number())
        case .inbound:
            return .inbound(session: try number(), packetIdentifier: try identifier())
        case .inboundRemoved:
            return .inboundRemoved(session: try number(), packetIdentifier: try identifier())
        case .retained: return .retained(message: try number())
        case .retainedRemoved: return .retainedRemoved(topic: try text())
        case .will: return .will(session: try number(), message: try number())
        case .willRemoved: return .willRemoved(session: try number())
        case .fact: return try fact(isNew: false)
        case .newFact: return try fact(isNew: true)
        case .factRemoved: return try factRemoved()
        case .factsRemoved: return try factsRemoved()
        }
    }

    var damage: DamagedRecord { DamagedRecord(offset: start) }

    mutating func byte() throws(DamagedRecord) -> UInt8 {
        guard offset < bytes.count else { throw damage }
        offset += 1
        return bytes[offset - 1]
    }

    mutating func flag() throws(DamagedRecord) -> Bool { try byte() != 0 }

    private mutating func identifier() throws(DamagedRecord) -> UInt16 {
        guard let identifier = UInt16(exactly: try integer() as UInt64) else { throw damage }
        return identifier
    }

    mutating func integer<Value: FixedWidthInteger & BitwiseCopyable>()
        throws(DamagedRecord) -> Value
    {
        let size = MemoryLayout<Value>.size
        guard bytes.count - offset >= size else { throw damage }
        offset += size
        return Value(
            littleEndian: bytes.loadUnaligned(fromByteOffset: offset - size, as: Value.self))
    }

    /// The number of a session, a message or a position.
    private mutating func number() throws(DamagedRecord) -> UInt64 {
        let number: UInt64 = try integer()
        guard number <= UInt64(Int64.max) else { throw damage }
        return number
    }

    private mutating func text() throws(DamagedRecord) -> RecordView.Bytes {
        let text = try string()
        guard text.count <= StoredBounds.mostText else { throw damage }
        return text
    }

    private mutating func payload() throws(DamagedRecord) -> RecordView.Bytes {
        let payload = try string()
        guard payload.count <= StoredBounds.mostPayload else { throw damage }
        return payload
    }

    mutating func string() throws(DamagedRecord) -> RecordView.Bytes {
        try taken(Int(try integer() as UInt32))
    }

    /// A part of a fact, behind its length.
    mutating func measured() throws(DamagedRecord) -> RecordView.Bytes {
        guard let count = FactLength.read(bytes, &offset) else { throw damage }
        return try taken(count)
    }

    private mutating func taken(_ count: Int) throws(DamagedRecord) -> RecordView.Bytes {
        guard bytes.count - offset >= count else { throw damage }
        offset += count
        return RecordView.Bytes(offset: offset - count, count: count)
    }

    func array(_ range: RecordView.Bytes) -> [UInt8] {
        [UInt8](bytes[range.offset..<range.offset + range.count])
    }
}

extension StoreRecord {
    /// A copy of a record that owns its strings; `nil` for the end of a group, and for a record
    /// that the present version does not write.
    init?(_ view: RecordView, in bytes: UnsafeRawBufferPointer) {
        func text(_ range: RecordView.Bytes) -> [UInt8] {
            [UInt8](bytes[range.offset..<range.offset + range.count])
        }
        switch view {
        case .commit, .former: return nil
        case .session(let number, let identifier, let userName):
            self = .session(
                number, clientID: text(identifier), userName: userName.map(text))
        case .sessionRemoved(let number): self = .sessionRemoved(number)
        case .sessionEnded(let number): self = .sessionEnded(number)
        case .attached(let number): self = .attached(number)
        case .detached(let number, let sinceMs): self = .detached(number, sinceMs: sinceMs)
        case .subscription(let session, let filter, let grant):
            self = .subscription(session, filter: text(filter), grant: grant)
        case .subscriptionRemoved(let session, let filter):
            self = .subscriptionRemoved(session, filter: text(filter))
        case .message(let number, let topic, let payload, let qos, let retain, let expiry):
            self = .message(
                number, topic: text(topic), payload: text(payload), qos: qos, retain: retain,
                expiresAtMs: expiry)
        case .named(let number, let messageID):
            self = .named(number, messageID: text(messageID))
        case .queued(let session, let position, let message, let qos, let retain, let isInWindow):
            self = .queued(
                session: session, position: position, message: message, qos: qos,
                retain: retain, isInWindow: isInWindow)
        case .shared(let session, let position, let filter):
            self = .shared(session: session, position: position, filter: text(filter))
        case .horizon(let session, let position):
            self = .horizon(session: session, position: position)
        case .released(let session, let position):
            self = .released(session: session, position: position)
        case .finished(let session, let position):
            self = .finished(session: session, position: position)
        case .inbound(let session, let identifier):
            self = .inbound(session: session, packetIdentifier: identifier)
        case .inboundRemoved(let session, let identifier):
            self = .inboundRemoved(session: session, packetIdentifier: identifier)
        case .retained(let message): self = .retained(message: message)
        case .retainedRemoved(let topic): self = .retainedRemoved(topic: text(topic))
        case .will(let session, let message): self = .will(session: session, message: message)
        case .willRemoved(let session): self = .willRemoved(session: session)
        case .fact(let place, let value, let isNew):
            self = .fact(
                Fact(
                    table: place.table, owner: place.owner, key: text(place.key),
                    value: text(value), isNew: isNew))
        case .factRemoved(let place):
            self = .factRemoved(
                table: place.table, owner: place.owner, key: text(place.key))
        case .factsRemoved(let table, let from, let below):
            self = .factsRemoved(table: table, from: text(from), below: text(below))
        }
    }
}
