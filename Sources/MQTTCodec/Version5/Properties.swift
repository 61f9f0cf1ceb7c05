/// The properties of a packet: a range of its bytes that has been checked, and the set of what is
/// in it. Nothing is copied; values are read when they are asked for.
public struct Properties: Hashable, Sendable, BitwiseCopyable {
    /// The properties as encoded, without their length.
    public let range: ByteRange
    /// The identifiers that are in the range.
    public let present: PropertySet

    private init(range: ByteRange, present: PropertySet) {
        self.range = range
        self.present = present
    }

    /// No properties. A packet that is encoded gets a length of 0 [MQTT-2.2.2-1].
    public static let none = empty(at: 0)

    static func empty(at offset: Int) -> Properties {
        Properties(range: ByteRange(offset: offset, count: 0), present: [])
    }

    /// Properties that ``PropertyEncoder`` wrote or that were stored, without their length. Throws
    /// unless they may stand in that place.
    public init(
        checking range: ByteRange, in bytes: RawSpan, for place: PropertyPlace
    ) throws(PacketFault) {
        self = try Self.check(range, bytes, in: place) { _ in }
    }

    public var isEmpty: Bool { range.isEmpty }

    /// Reads the length and the properties behind it, and hands each to `body` once all its rules
    /// are checked. The work is linear in the bytes, whatever is repeated in them.
    @inline(__always)
    static func decode(
        _ reader: inout FieldReader5, _ bytes: RawSpan, in place: PropertyPlace,
        _ body: (Property) -> Void
    ) throws(PacketFault) -> Properties {
        let count = try reader.variableByteInteger(bytes)
        guard count <= reader.remaining else { throw .propertyLength }
        return try check(reader.take(count), bytes, in: place, body)
    }

    @inline(__always)
    private static func check(
        _ range: ByteRange, _ bytes: RawSpan, in place: PropertyPlace,
        _ body: (Property) -> Void
    ) throws(PacketFault) -> Properties {
        var fields = FieldReader5(range)
        var present: PropertySet = []
        while !fields.isAtEnd {
            body(try next(&fields, bytes, place, &present))
        }
        return Properties(range: range, present: present)
    }

    private static func next(
        _ fields: inout FieldReader5, _ bytes: RawSpan, _ place: PropertyPlace,
        _ present: inout PropertySet
    ) throws(PacketFault) -> Property {
        // An identifier of several bytes in minimal form is above all that are defined.
        let value = UInt8(exactly: try fields.variableByteInteger(bytes))
        guard let identifier = value.flatMap(PropertyIdentifier.init) else {
            throw .unknownProperty
        }
        guard place.allowed.contains(identifier) else { throw place.fault(of: identifier) }
        guard !present.contains(identifier) || place.repeatable.contains(identifier) else {
            throw .repeatedProperty(identifier)
        }
        let property = try Property.decode(identifier, &fields, bytes)
        try property.checkText(bytes)
        present.formUnion(PropertySet(identifier))
        return property
    }

    /// Walks over the properties in their order.
    public var cursor: PropertyCursor { PropertyCursor(range) }

    /// The first property of this name; costs nothing when there is none.
    public func first(_ identifier: PropertyIdentifier, in bytes: RawSpan) -> Property? {
        guard present.contains(identifier) else { return nil }
        var cursor = cursor
        while let property = cursor.next(in: bytes) {
            if property.identifier == identifier { return property }
        }
        return nil
    }
}

/// Walks over properties that have been checked, in their order.
public struct PropertyCursor: Sendable, BitwiseCopyable {
    /// What is left.
    public private(set) var rest: ByteRange

    /// `range` holds whole properties that were checked: those of ``Properties``, or the copy that
    /// ``ForwardedProperties`` makes of them.
    public init(_ range: ByteRange) { rest = range }

    /// Takes the next property; `nil` after the last.
    public mutating func next(in bytes: RawSpan) -> Property? {
        guard !rest.isEmpty else { return nil }
        var reader = FieldReader5(rest)
        guard let value = try? reader.byte(bytes),
            let identifier = PropertyIdentifier(rawValue: value),
            let property = try? Property.decode(identifier, &reader, bytes)
        else { preconditionFailure("properties that were decoded no longer decode") }
        rest = reader.rest()
        return property
    }
}

extension Properties {
    /// Seconds; `nil` for a message that does not expire.
    public func messageExpiryInterval(in bytes: RawSpan) -> UInt32? {
        guard case .messageExpiryInterval(let seconds)? = first(.messageExpiryInterval, in: bytes)
        else { return nil }
        return seconds
    }

    public func payloadFormat(in bytes: RawSpan) -> PayloadFormat {
        guard case .payloadFormatIndicator(let format)? = first(.payloadFormatIndicator, in: bytes)
        else { return .unspecified }
        return format
    }

    /// Seconds; `nil` leaves what CONNECT said, in DISCONNECT.
    public func sessionExpiryInterval(in bytes: RawSpan) -> UInt32? {
        guard case .sessionExpiryInterval(let seconds)? = first(.sessionExpiryInterval, in: bytes)
        else { return nil }
        return seconds
    }

    /// The text or data of a property that has one; `nil` for user properties and numbers.
    public func field(_ identifier: PropertyIdentifier, in bytes: RawSpan) -> ByteRange? {
        switch first(identifier, in: bytes) {
        case .contentType(let field), .responseTopic(let field), .correlationData(let field),
            .assignedClientIdentifier(let field), .authenticationMethod(let field),
            .authenticationData(let field), .responseInformation(let field),
            .serverReference(let field), .reasonString(let field):
            field
        default: nil
        }
    }
}
