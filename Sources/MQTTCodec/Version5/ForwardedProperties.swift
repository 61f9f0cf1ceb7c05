/// The properties of a message that a server passes on unchanged and in their order: payload
/// format, content type, response topic, correlation data and user properties. Topic alias,
/// subscription identifiers, expiry and will delay belong to one hop or to the will.
///
/// Either all that a packet has, or those that were copied out of it and kept with the message.
public struct ForwardedProperties: Sendable, BitwiseCopyable {
    /// Bytes that ``copy(to:from:)`` writes.
    public let count: Int
    private let source: ByteRange
    /// True if the source holds nothing else, so that it is copied at once.
    private let isWhole: Bool

    /// The forwarded ones among a PUBLISH's or a will's properties.
    public init(_ properties: Properties, in bytes: RawSpan) {
        source = properties.range
        isWhole = PropertySet.forwarded.isSuperset(of: properties.present)
        guard !isWhole else {
            count = Int(properties.range.count)
            return
        }
        var total = 0
        Self.forEachRun(of: properties.range, in: bytes) { run in total += Int(run.count) }
        count = total
    }

    /// Checks bytes that were kept: throws unless they are whole properties that a server passes
    /// on, such as ``copy(to:from:)`` writes.
    public init(stored range: ByteRange, in bytes: RawSpan) throws(PacketFault) {
        source = try Properties(checking: range, in: bytes, for: .storedMessage).range
        isWhole = true
        count = Int(range.count)
    }

    /// Bytes that ``copy(to:from:)`` has written, and that are copied again as a whole.
    public init(whole copied: UnsafeRawBufferPointer) {
        source = ByteRange(offset: 0, count: copied.count)
        isWhole = true
        count = copied.count
    }

    public var isEmpty: Bool { count == 0 }

    /// Writes ``count`` bytes, from the bytes that the properties were found in.
    public func copy(to destination: UnsafeMutableRawPointer, from bytes: UnsafeRawBufferPointer) {
        guard count > 0 else { return }
        guard isWhole else {
            var offset = 0
            Self.forEachRun(of: source, in: bytes.bytes) { run in
                Self.copy(bytes[run], to: destination + offset)
                offset += Int(run.count)
            }
            return
        }
        Self.copy(bytes[source], to: destination)
    }

    private static func copy(
        _ run: UnsafeRawBufferPointer, to destination: UnsafeMutableRawPointer
    ) {
        guard let base = run.baseAddress else { return }
        destination.copyMemory(from: base, byteCount: run.count)
    }

    /// Calls `body` with each stretch of forwarded properties.
    private static func forEachRun(
        of range: ByteRange, in bytes: RawSpan, _ body: (ByteRange) -> Void
    ) {
        var cursor = PropertyCursor(range)
        var runStart = range.start
        var runEnd = range.start
        while let property = cursor.next(in: bytes) {
            if PropertySet.forwarded.contains(property.identifier) {
                runEnd = cursor.rest.start
            } else {
                if runEnd > runStart {
                    body(ByteRange(offset: runStart, count: runEnd - runStart))
                }
                runStart = cursor.rest.start
                runEnd = runStart
            }
        }
        if runEnd > runStart { body(ByteRange(offset: runStart, count: runEnd - runStart)) }
    }
}
