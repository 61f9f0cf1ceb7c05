/// SUBSCRIBE: asks for subscriptions (section 3.8). Holds at least one topic filter with its QoS,
/// all checked.
public struct Subscribe: Hashable, Sendable {
    public struct Request: Hashable, Sendable {
        public var filter: TopicFilter
        public var qos: QoS
    }

    public var packetIdentifier: PacketIdentifier
    /// Number of topic filters; at least 1.
    public var count: Int
    private var requests: ByteRange

    public init(packetIdentifier: PacketIdentifier, count: Int, encodedRequests: ByteRange) {
        self.packetIdentifier = packetIdentifier
        self.count = count
        requests = encodedRequests
    }

    /// The requests that ``next(in:)`` has not taken yet, as encoded in the packet.
    public var encodedRequests: ByteRange { requests }

    /// Takes the next request, in the packet's order; `nil` after the last.
    public mutating func next(in bytes: RawSpan) -> Request? { Self.next(in: bytes, &requests) }

    /// The same for requests that were left, ``encodedRequests``.
    public static func next(in bytes: RawSpan, _ requests: inout ByteRange) -> Request? {
        guard !requests.isEmpty else { return nil }
        var reader = FieldReader(requests)
        guard let range = try? reader.data(bytes),
            let filter = try? TopicFilter(validating: range, in: bytes),
            let byte = try? reader.byte(bytes), let qos = QoS(rawValue: byte)
        else { preconditionFailure("a SUBSCRIBE that was decoded no longer decodes") }
        requests = reader.rest()
        return Request(filter: filter, qos: qos)
    }

    static func decode(_ body: ByteRange, _ bytes: RawSpan) throws(MalformedPacket) -> Subscribe {
        var reader = FieldReader(body)
        let identifier = try reader.packetIdentifier(bytes)
        let start = reader.offset
        var count = 0
        while !reader.isAtEnd {
            _ = try TopicFilter(validating: try reader.data(bytes), in: bytes)
            // Upper six bits reserved, QoS not 3 [MQTT-3.8.3-4].
            guard QoS(rawValue: try reader.byte(bytes)) != nil else { throw .requestedQoS }
            count += 1
        }
        guard count > 0 else { throw .noTopicFilter }  // [MQTT-3.8.3-3]
        return Subscribe(
            packetIdentifier: identifier, count: count,
            encodedRequests: ByteRange(offset: start, count: body.end - start))
    }
}

/// SUBACK: grants or refuses each topic filter of a SUBSCRIBE, in its order (section 3.9).
public struct Suback: Hashable, Sendable {
    public static let failure: UInt8 = 0x80

    public var packetIdentifier: PacketIdentifier
    /// One byte per topic filter: the granted QoS or ``failure`` [MQTT-3.9.3-2].
    public var returnCodes: ByteRange

    public init(packetIdentifier: PacketIdentifier, returnCodes: ByteRange) {
        self.packetIdentifier = packetIdentifier
        self.returnCodes = returnCodes
    }

    static func decode(_ body: ByteRange, _ bytes: RawSpan) throws(MalformedPacket) -> Suback {
        var reader = FieldReader(body)
        let identifier = try reader.packetIdentifier(bytes)
        let codes = reader.rest()
        guard !codes.isEmpty else { throw .truncated }
        for offset in codes.start..<codes.end {
            let code = bytes.byte(at: offset)
            guard code <= 2 || code == failure else { throw .returnCode }
        }
        return Suback(packetIdentifier: identifier, returnCodes: codes)
    }
}

/// UNSUBSCRIBE: ends subscriptions (section 3.10). Holds at least one topic filter, all checked.
public struct Unsubscribe: Hashable, Sendable {
    public var packetIdentifier: PacketIdentifier
    /// Number of topic filters; at least 1.
    public var count: Int
    private var filters: ByteRange

    public init(packetIdentifier: PacketIdentifier, count: Int, encodedFilters: ByteRange) {
        self.packetIdentifier = packetIdentifier
        self.count = count
        filters = encodedFilters
    }

    /// The topic filters that ``next(in:)`` has not taken yet, as encoded in the packet.
    public var encodedFilters: ByteRange { filters }

    /// Takes the next topic filter, in the packet's order; `nil` after the last.
    public mutating func next(in bytes: RawSpan) -> TopicFilter? { Self.next(in: bytes, &filters) }

    /// The same for filters that were left, ``encodedFilters``.
    public static func next(in bytes: RawSpan, _ filters: inout ByteRange) -> TopicFilter? {
        guard !filters.isEmpty else { return nil }
        var reader = FieldReader(filters)
        guard let range = try? reader.data(bytes),
            let filter = try? TopicFilter(validating: range, in: bytes)
        else { preconditionFailure("an UNSUBSCRIBE that was decoded no longer decodes") }
        filters = reader.rest()
        return filter
    }

    static func decode(
        _ body: ByteRange, _ bytes: RawSpan
    ) throws(MalformedPacket) -> Unsubscribe {
        var reader = FieldReader(body)
        let identifier = try reader.packetIdentifier(bytes)
        let start = reader.offset
        var count = 0
        while !reader.isAtEnd {
            _ = try TopicFilter(validating: try reader.data(bytes), in: bytes)
            count += 1
        }
        guard count > 0 else { throw .noTopicFilterToRemove }  // [MQTT-3.10.3-2]
        return Unsubscribe(
            packetIdentifier: identifier, count: count,
            encodedFilters: ByteRange(offset: start, count: body.end - start))
    }
}
