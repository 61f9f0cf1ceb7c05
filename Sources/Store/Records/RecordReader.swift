/// A record in its buffer: numbers, and ranges for its strings.
public enum RecordView: BitwiseCopyable {
    /// A range of the buffer.
    public struct Bytes: BitwiseCopyable, Sendable {
        public var offset: Int
        public var count: Int
    }

    /// End of a group, with its ticket.
    case commit(UInt64)
    case session(UInt64, clientIdentifier: Bytes, userName: Bytes?)
    case sessionRemoved(UInt64)
    case sessionEnded(UInt64)
    case attached(UInt64)
    case detached(UInt64, sinceMs: Int64)
    case subscription(UInt64, filter: Bytes, qos: UInt8)
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
    case sequence(channel: Bytes, number: UInt64)
    case publishKey(PublishKey)
    case publishKeysDropped(below: UInt64)
    case receipt(UInt64, atMs: Int64, messageID: Bytes, topic: Bytes)
    case receiptReceiver(
        receipt: UInt64, place: UInt32, session: UInt64, position: UInt64, clientIdentifier: Bytes)
    case receiptEnded(ReceiverEnd)
    case receiptProgress(ReceiptProgress)
    case scheduled(
        UInt64, dueMs: Int64, expiresInMs: Int64, messageID: Bytes, topic: Bytes, payload: Bytes,
        qos: UInt8, retain: Bool, isFollowed: Bool)
    case scheduledMoved(UInt64, dueMs: Int64)
    case scheduledEnded(UInt64)
    case collapsible(CollapsibleView)
    case collapsibleEnded(session: UInt64, position: UInt64)
    case tag(Bytes, clientIdentifier: Bytes, isSet: Bool)
    case push(PushView)
    case pushProgress(PushProgress)
    case pushRemoved(UInt64)
    case device(DeviceView)
    case deviceRemoved(Bytes)
    case woken(clientIdentifier: Bytes, StoredDevice.Woken)
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
    case will, willRemoved, sequence
    /// Since version 2 of the journal's format.
    case shared, sessionEnded
    /// Since version 3.
    case publishKey, publishKeysDropped
    case named = 40
    case collapsible = 43
    case collapsibleEnded = 44
    case receipt = 45
    case receiptReceiver = 46
    case receiptEnded = 47
    case receiptProgress = 48
    case scheduled = 50
    case scheduledMoved = 51
    case scheduledEnded = 52
    case tag = 55
    case push = 56
    case pushProgress = 57
    case pushRemoved = 58
    /// Since version 4.
    case device = 60
    case deviceRemoved = 61
    case woken = 62
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
        guard let kind = RecordKind(rawValue: try byte()) else { throw damage }
        switch kind {
        case .commit: return .commit(try integer())
        case .session:
            let number: UInt64 = try integer()
            let identifier = try string()
            let hasUserName = try flag()
            let userName = try string()
            return .session(
                number, clientIdentifier: identifier, userName: hasUserName ? userName : nil)
        case .sessionRemoved: return .sessionRemoved(try integer())
        case .sessionEnded: return .sessionEnded(try integer())
        case .attached: return .attached(try integer())
        case .detached:
            return .detached(try integer(), sinceMs: Int64(bitPattern: try integer() as UInt64))
        case .subscription:
            return .subscription(try integer(), filter: try string(), qos: try byte())
        case .subscriptionRemoved:
            return .subscriptionRemoved(try integer(), filter: try string())
        case .message:
            let number: UInt64 = try integer()
            let expiry = Int64(bitPattern: try integer() as UInt64)
            let qos = try byte()
            let retain = try flag()
            return .message(
                number, topic: try string(), payload: try string(), qos: qos, retain: retain,
                expiresAtMs: expiry)
        case .named: return .named(try integer(), messageID: try string())
        case .queued:
            return .queued(
                session: try integer(), position: try integer(), message: try integer(),
                qos: try byte(), retain: try flag(), isInWindow: try flag())
        case .shared:
            return .shared(
                session: try integer(), position: try integer(), filter: try string())
        case .horizon: return .horizon(session: try integer(), position: try integer())
        case .released: return .released(session: try integer(), position: try integer())
        case .finished: return .finished(session: try integer(), position: try integer())
        case .inbound:
            return .inbound(session: try integer(), packetIdentifier: try identifier())
        case .inboundRemoved:
            return .inboundRemoved(session: try integer(), packetIdentifier: try identifier())
        case .retained: return .retained(message: try integer())
        case .retainedRemoved: return .retainedRemoved(topic: try string())
        case .will: return .will(session: try integer(), message: try integer())
        case .willRemoved: return .willRemoved(session: try integer())
        case .sequence:
            let number: UInt64 = try integer()
            return .sequence(channel: try string(), number: number)
        case .publishKey:
            return .publishKey(
                PublishKey(
                    key: try integer(), digest: try integer(), messageID: try integer(),
                    bucket: try integer(), matched: try integer(), online: try integer(),
                    queued: try integer(), dropped: try integer()))
        case .publishKeysDropped: return .publishKeysDropped(below: try integer())
        case .receipt:
            return .receipt(
                try integer(), atMs: try integer(), messageID: try string(), topic: try string())
        case .receiptReceiver:
            return .receiptReceiver(
                receipt: try integer(), place: try integer(), session: try integer(),
                position: try integer(), clientIdentifier: try string())
        case .receiptEnded:
            return .receiptEnded(
                ReceiverEnd(
                    receipt: try integer(), place: try integer(), outcome: try byte(),
                    reason: try byte(), atMs: try integer(), event: try integer()))
        case .receiptProgress:
            return .receiptProgress(
                ReceiptProgress(
                    begin: try integer(), lastEvent: try integer(), taken: try integer()))
        case .scheduled:
            let number: UInt64 = try integer()
            let dueMs: Int64 = try integer()
            let expiresInMs: Int64 = try integer()
            let qos = try byte()
            let retain = try flag()
            let isFollowed = try flag()
            return .scheduled(
                number, dueMs: dueMs, expiresInMs: expiresInMs, messageID: try string(),
                topic: try string(), payload: try string(), qos: qos, retain: retain,
                isFollowed: isFollowed)
        case .scheduledMoved: return .scheduledMoved(try integer(), dueMs: try integer())
        case .scheduledEnded: return .scheduledEnded(try integer())
        case .collapsible: return .collapsible(try collapsible())
        case .collapsibleEnded:
            return .collapsibleEnded(session: try integer(), position: try integer())
        case .tag: return try tag()
        case .push: return .push(try push())
        case .pushProgress: return .pushProgress(try pushProgress())
        case .pushRemoved: return .pushRemoved(try integer())
        case .device: return .device(try device())
        case .deviceRemoved: return .deviceRemoved(try string())
        case .woken: return try woken()
        }
    }

    private var damage: DamagedRecord { DamagedRecord(offset: start) }

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

    mutating func string() throws(DamagedRecord) -> RecordView.Bytes { try items(of: 1) }

    /// Numbers of eight bytes behind their count.
    mutating func numbers() throws(DamagedRecord) -> RecordView.Bytes { try items(of: 8) }

    private mutating func items(of size: Int) throws(DamagedRecord) -> RecordView.Bytes {
        let count = Int(try integer() as UInt32) * size
        guard bytes.count - offset >= count else { throw damage }
        offset += count
        return RecordView.Bytes(offset: offset - count, count: count)
    }
}

extension StoreRecord {
    /// A copy of a record that owns its strings; `nil` for the end of a group.
    init?(_ view: RecordView, in bytes: UnsafeRawBufferPointer) {
        func text(_ range: RecordView.Bytes) -> [UInt8] {
            [UInt8](bytes[range.offset..<range.offset + range.count])
        }
        switch view {
        case .commit: return nil
        case .session(let number, let identifier, let userName):
            self = .session(
                number, clientIdentifier: text(identifier), userName: userName.map(text))
        case .sessionRemoved(let number): self = .sessionRemoved(number)
        case .sessionEnded(let number): self = .sessionEnded(number)
        case .attached(let number): self = .attached(number)
        case .detached(let number, let sinceMs): self = .detached(number, sinceMs: sinceMs)
        case .subscription(let session, let filter, let qos):
            self = .subscription(session, filter: text(filter), qos: qos)
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
        case .sequence(let channel, let number):
            self = .sequence(channel: text(channel), number: number)
        case .publishKey(let key): self = .publishKey(key)
        case .publishKeysDropped(let bucket): self = .publishKeysDropped(below: bucket)
        case .receipt(let number, let atMs, let messageID, let topic):
            self = .receipt(
                StoredReceipt(
                    number: number, atMs: atMs, messageID: text(messageID), topic: text(topic)))
        case .receiptReceiver(let receipt, let place, let session, let position, let identifier):
            self = .receiptReceiver(
                StoredReceiver(
                    receipt: receipt, place: place, session: session, position: position,
                    clientIdentifier: text(identifier)))
        case .receiptEnded(let end): self = .receiptEnded(end)
        case .receiptProgress(let progress): self = .receiptProgress(progress)
        case .scheduled(
            let number, let dueMs, let expiresInMs, let messageID, let topic, let payload, let qos,
            let retain, let isFollowed):
            self = .scheduled(
                StoredScheduled(
                    number: number, dueMs: dueMs, expiresInMs: expiresInMs,
                    messageID: text(messageID), topic: text(topic), payload: text(payload),
                    qos: qos, retain: retain, isFollowed: isFollowed))
        case .scheduledMoved(let number, let dueMs): self = .scheduledMoved(number, dueMs: dueMs)
        case .scheduledEnded(let number): self = .scheduledEnded(number)
        case .collapsible(let view): self = .collapsible(StoredCollapsible(view, in: bytes))
        case .collapsibleEnded(let session, let position):
            self = .collapsibleEnded(session: session, position: position)
        case .tag(let tag, let client, let isSet):
            self = .tag(
                StoredTag(clientIdentifier: text(client), tag: text(tag)), isSet: isSet)
        case .push(let push): self = .push(StoredPush(push, text))
        case .pushProgress(let progress): self = .pushProgress(progress)
        case .pushRemoved(let number): self = .pushRemoved(number)
        case .device(let device): self = .device(StoredDevice(device, text))
        case .deviceRemoved(let client): self = .deviceRemoved(text(client))
        case .woken(let client, let woken): self = .woken(text(client), woken)
        }
    }
}
