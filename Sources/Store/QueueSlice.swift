/// Messages of one session's queue, as the store has read them.
public struct QueueSlice: Sendable {
    /// One position of the queue. Its bytes are valid only during the call that hands it over.
    public struct Item {
        public var position: UInt64
        public var topic: UnsafeRawBufferPointer
        public var payload: UnsafeRawBufferPointer
        /// The QoS at which this session gets the message.
        public var qos: UInt8
        public var retain: Bool
        /// The QoS of the publisher's PUBLISH.
        public var publishedQoS: UInt8
        public var publishedRetain: Bool
        /// UNIX time in milliseconds; 0 for a message that never expires.
        public var expiresAtMs: Int64
        /// True for a QoS 2 message whose PUBREC has come: the broker only owes PUBREL, and topic
        /// and payload are empty.
        public var isReleased: Bool
        /// The whole filter of the shared subscription that chose this session; empty for none.
        public var shared: UnsafeRawBufferPointer
        /// The message's identifier; empty for none.
        public var messageID: UnsafeRawBufferPointer

        /// Notes that PUBREC has come, and drops the content.
        public mutating func release() {
            isReleased = true
            topic = UnsafeRawBufferPointer(start: nil, count: 0)
            payload = topic
            messageID = topic
        }
    }

    public let request: QueueRead
    /// The position from which the next read begins. It is at least `request.below` when nothing
    /// more is stored, and therefore always when no position was read and there is no failure.
    public let next: UInt64
    /// The failure that ended the read; positions before it are complete.
    public let failure: StoreFailure?
    private let bytes: [UInt8]
    private let released: [ClosedRange<UInt64>]

    /// - Parameters:
    ///   - request: the request that is answered.
    ///   - next: the position from which the next read begins.
    ///   - bytes: the records of each position, in order: `message`, `named` if needed, `queued`,
    ///     and `shared` and `released` if needed.
    ///   - released: rising ranges of positions whose messages of QoS 2 are released although `bytes`
    ///     does not say so.
    ///   - failure: the failure that ended the read.
    public init(
        request: QueueRead, next: UInt64, bytes: [UInt8],
        released: [ClosedRange<UInt64>] = [], failure: StoreFailure? = nil
    ) {
        self.request = request
        self.next = next
        self.bytes = bytes
        self.released = released
        self.failure = failure
    }

    /// Calls `body` for each position, in rising order.
    public func forEach(_ body: (Item) -> Void) {
        bytes.withUnsafeBytes { bytes in
            var reader = RecordReader(bytes)
            var pending: Item?
            while let record = try? reader.next() {
                switch record {
                case .message(_, let topic, let payload, let qos, let retain, let expiresAtMs):
                    hand(&pending, body)
                    pending = Item(
                        position: 0, topic: Self.part(bytes, topic),
                        payload: Self.part(bytes, payload), qos: 0, retain: false,
                        publishedQoS: qos, publishedRetain: retain, expiresAtMs: expiresAtMs,
                        isReleased: false,
                        shared: UnsafeRawBufferPointer(start: nil, count: 0),
                        messageID: UnsafeRawBufferPointer(start: nil, count: 0))
                case .named(_, let messageID):
                    pending?.messageID = Self.part(bytes, messageID)
                case .queued(_, let position, _, let qos, let retain, _):
                    pending?.position = position
                    pending?.qos = qos
                    pending?.retain = retain
                case .shared(_, _, let filter): pending?.shared = Self.part(bytes, filter)
                case .released: pending?.isReleased = true
                default: continue
                }
            }
            hand(&pending, body)
        }
    }

    private func hand(_ item: inout Item?, _ body: (Item) -> Void) {
        guard var taken = item.take() else { return }
        if taken.qos == 2, Self.contains(taken.position, in: released) {
            taken.release()
        }
        body(taken)
    }

    private static func part(
        _ bytes: UnsafeRawBufferPointer, _ range: RecordView.Bytes
    ) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes[range.offset..<range.offset + range.count])
    }

    private static func contains(_ position: UInt64, in ranges: [ClosedRange<UInt64>]) -> Bool {
        var low = 0
        var high = ranges.count
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound < position { low = middle + 1 } else { high = middle }
        }
        return low < ranges.count && ranges[low].contains(position)
    }
}
