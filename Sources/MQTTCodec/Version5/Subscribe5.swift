/// What a subscription asks for besides its filter (MQTT 5.0, section 3.8.3.1).
public struct SubscriptionOptions: Hashable, Sendable, BitwiseCopyable {
    /// When retained messages are sent.
    public enum RetainHandling: UInt8, Hashable, Sendable, CaseIterable, BitwiseCopyable {
        case atEverySubscribe = 0
        case atNewSubscription = 1
        case never = 2
    }

    public var qos: QoS
    /// True if the client's own messages do not come back to it.
    public var noLocal: Bool
    /// True if messages keep the RETAIN flag with which they were published.
    public var retainAsPublished: Bool
    public var retainHandling: RetainHandling

    public init(
        qos: QoS, noLocal: Bool = false, retainAsPublished: Bool = false,
        retainHandling: RetainHandling = .atEverySubscribe
    ) {
        self.qos = qos
        self.noLocal = noLocal
        self.retainAsPublished = retainAsPublished
        self.retainHandling = retainHandling
    }

    init(decoding byte: UInt8) throws(PacketFault) {
        guard byte & 0xC0 == 0 else { throw .subscriptionOptions }  // [MQTT-3.8.3-5]
        guard let qos = QoS(rawValue: byte & 0x03) else { throw .requestedQoS }
        guard let handling = RetainHandling(rawValue: byte >> 4) else { throw .retainHandling }
        self.init(
            qos: qos, noLocal: byte & 0x04 != 0, retainAsPublished: byte & 0x08 != 0,
            retainHandling: handling)
    }

    /// As SUBSCRIBE carries it.
    public var encoded: UInt8 {
        qos.rawValue | (noLocal ? 0x04 : 0) | (retainAsPublished ? 0x08 : 0)
            | retainHandling.rawValue << 4
    }
}

/// A topic filter of SUBSCRIBE or UNSUBSCRIBE: UTF-8 without U+0000.
public struct RequestedFilter: Hashable, Sendable {
    /// The filter as sent.
    public let text: ByteRange
    /// The checked filter, or the rule that it breaks. The broker answers for this filter alone,
    /// with the rule's ``PacketFault/reasonCode``.
    public let filter: Result<TopicFilter, PacketFault>

    fileprivate init(_ text: ByteRange, in bytes: RawSpan) {
        self.text = text
        do throws(MalformedPacket) {
            filter = .success(try TopicFilter(validating: text, in: bytes))
        } catch {
            filter = .failure(error == .emptyTopic ? .emptyTopicFilter : PacketFault(text: error))
        }
    }

    /// True if the filter asks for a shared subscription, well-formed or not (section 4.8.2).
    public func isShared(in bytes: RawSpan) -> Bool { Self.isShared(text, bytes) }

    fileprivate static func isShared(_ text: ByteRange, _ bytes: RawSpan) -> Bool {
        let prefix: StaticString = "$share/"
        guard text.count >= prefix.utf8CodeUnitCount else { return false }
        for index in 0..<prefix.utf8CodeUnitCount {
            guard bytes.byte(at: text.start + index) == prefix.utf8Start[index] else {
                return false
            }
        }
        return true
    }
}

/// SUBSCRIBE of MQTT 5.0: asks for subscriptions (section 3.8). Holds at least one topic filter
/// with its options.
public struct Subscribe5: Hashable, Sendable {
    public struct Request: Hashable, Sendable {
        public let filter: RequestedFilter
        public let options: SubscriptionOptions
    }

    public var packetIdentifier: PacketIdentifier
    /// Comes with the messages of each of these subscriptions.
    public var subscriptionIdentifier: SubscriptionIdentifier?
    /// All properties, with the subscription identifier.
    public var properties: Properties
    /// Number of topic filters; at least 1.
    public var count: Int
    private var requests: ByteRange

    public init(
        packetIdentifier: PacketIdentifier, subscriptionIdentifier: SubscriptionIdentifier? = nil,
        properties: Properties = .none, count: Int, encodedRequests: ByteRange
    ) {
        self.packetIdentifier = packetIdentifier
        self.subscriptionIdentifier = subscriptionIdentifier
        self.properties = properties
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
        var reader = FieldReader5(requests)
        guard let text = try? reader.data(bytes), let byte = try? reader.byte(bytes),
            let options = try? SubscriptionOptions(decoding: byte)
        else { preconditionFailure("a SUBSCRIBE that was decoded no longer decodes") }
        requests = reader.rest()
        return Request(filter: RequestedFilter(text, in: bytes), options: options)
    }

    static func decode(_ body: ByteRange, _ bytes: RawSpan) throws(PacketFault) -> Subscribe5 {
        var reader = FieldReader5(body)
        let identifier = try reader.packetIdentifier(bytes)
        var number: SubscriptionIdentifier?
        let properties = try Properties.decode(&reader, bytes, in: .subscribe) { property in
            if case .subscriptionIdentifier(let value) = property { number = value }
        }
        let start = reader.offset
        var count = 0
        while !reader.isAtEnd {
            let filter = try reader.string(bytes)
            let options = try SubscriptionOptions(decoding: try reader.byte(bytes))
            guard !options.noLocal || !RequestedFilter.isShared(filter, bytes) else {
                throw .noLocalOnSharedSubscription  // [MQTT-3.8.3-4]
            }
            count += 1
        }
        guard count > 0 else { throw .noTopicFilter }  // [MQTT-3.8.3-2]
        return Subscribe5(
            packetIdentifier: identifier, subscriptionIdentifier: number, properties: properties,
            count: count, encodedRequests: ByteRange(offset: start, count: body.end - start))
    }
}

/// UNSUBSCRIBE of MQTT 5.0: ends subscriptions (section 3.10). Holds at least one topic filter.
public struct Unsubscribe5: Hashable, Sendable {
    public var packetIdentifier: PacketIdentifier
    public var properties: Properties
    /// Number of topic filters; at least 1.
    public var count: Int
    private var filters: ByteRange

    public init(
        packetIdentifier: PacketIdentifier, properties: Properties = .none, count: Int,
        encodedFilters: ByteRange
    ) {
        self.packetIdentifier = packetIdentifier
        self.properties = properties
        self.count = count
        filters = encodedFilters
    }

    /// The topic filters that ``next(in:)`` has not taken yet, as encoded in the packet.
    public var encodedFilters: ByteRange { filters }

    /// Takes the next topic filter, in the packet's order; `nil` after the last.
    public mutating func next(in bytes: RawSpan) -> RequestedFilter? {
        Self.next(in: bytes, &filters)
    }

    /// The same for filters that were left, ``encodedFilters``.
    public static func next(in bytes: RawSpan, _ filters: inout ByteRange) -> RequestedFilter? {
        guard !filters.isEmpty else { return nil }
        var reader = FieldReader5(filters)
        guard let text = try? reader.data(bytes) else {
            preconditionFailure("an UNSUBSCRIBE that was decoded no longer decodes")
        }
        filters = reader.rest()
        return RequestedFilter(text, in: bytes)
    }

    static func decode(_ body: ByteRange, _ bytes: RawSpan) throws(PacketFault) -> Unsubscribe5 {
        var reader = FieldReader5(body)
        let identifier = try reader.packetIdentifier(bytes)
        let properties = try Properties.decode(&reader, bytes, in: .unsubscribe) { _ in }
        let start = reader.offset
        var count = 0
        while !reader.isAtEnd {
            _ = try reader.string(bytes)
            count += 1
        }
        guard count > 0 else { throw .noTopicFilterToRemove }  // [MQTT-3.10.3-2]
        return Unsubscribe5(
            packetIdentifier: identifier, properties: properties, count: count,
            encodedFilters: ByteRange(offset: start, count: body.end - start))
    }
}
