/// Writes the key or the value of a fact straight into the bytes of a ``WriteBatch``.
///
/// Numbers have their most significant byte first, so that keys have the order of their numbers.
public struct FactBytes: ~Copyable {
    private(set) var bytes: [UInt8]

    init(_ bytes: consuming [UInt8]) { self.bytes = bytes }

    consuming func finish() -> [UInt8] { bytes }

    public mutating func put(_ value: UInt8) { bytes.append(value) }
    public mutating func put(_ value: Bool) { bytes.append(value ? 1 : 0) }
    public mutating func put(_ value: UInt32) { append(value) }
    public mutating func put(_ value: UInt64) { append(value) }
    public mutating func put(_ value: Int64) { append(value) }
    public mutating func put(_ value: UInt128) { append(value) }

    /// Writes bytes to the end of the key or value; they have no length.
    public mutating func putRest(_ rest: UnsafeRawBufferPointer) {
        bytes.append(contentsOf: rest)
    }

    public mutating func putRest(_ rest: [UInt8]) { bytes.append(contentsOf: rest) }

    /// Writes bytes behind their length, so that more may follow.
    public mutating func putText(_ text: UnsafeRawBufferPointer) {
        FactLength.append(text.count, to: &bytes)
        bytes.append(contentsOf: text)
    }

    public mutating func putText(_ text: [UInt8]) {
        text.withUnsafeBytes { putText($0) }
    }

    private mutating func append(_ value: some FixedWidthInteger & BitwiseCopyable) {
        withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
    }

    /// Writes a part behind its length. Nearly every part is shorter than 128 bytes, so one byte is
    /// kept free, and only a longer part is moved.
    mutating func putMeasured(_ part: (inout FactBytes) -> Void) {
        bytes.append(0)
        let start = bytes.count
        part(&self)
        let count = bytes.count - start
        if count < 128 {
            bytes[start - 1] = UInt8(count)
        } else {
            var length: [UInt8] = []
            FactLength.append(count, to: &length)
            bytes.replaceSubrange(start - 1..<start, with: length)
        }
    }
}

/// A length in groups of seven bits, the lowest first; the highest bit of a byte says that another
/// one follows.
enum FactLength {
    static func append(_ count: Int, to bytes: inout [UInt8]) {
        var rest = count
        while rest >= 128 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 128)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    /// Reads a length of at most five bytes; `nil` at the end of the bytes or for a longer one.
    static func read(_ bytes: UnsafeRawBufferPointer, _ offset: inout Int) -> Int? {
        var count = 0
        for shift in stride(from: 0, to: 35, by: 7) {
            guard offset < bytes.count else { return nil }
            let byte = bytes[offset]
            offset += 1
            count |= Int(byte & 127) << shift
            if byte < 128 { return count }
        }
        return nil
    }
}

/// Reads the key or the value of a fact, as ``FactBytes`` wrote it.
public struct FactReader {
    private let bytes: UnsafeRawBufferPointer
    private var offset = 0

    public init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    public mutating func byte() throws(DamagedFact) -> UInt8 { try integer() }
    public mutating func flag() throws(DamagedFact) -> Bool { try byte() != 0 }
    public mutating func count() throws(DamagedFact) -> UInt32 { try integer() }
    public mutating func wideNumber() throws(DamagedFact) -> UInt128 { try integer() }

    /// A number below 2^63.
    public mutating func number() throws(DamagedFact) -> UInt64 {
        let number: UInt64 = try integer()
        guard number <= UInt64(Int64.max) else { throw DamagedFact() }
        return number
    }

    /// A UNIX time or a span in milliseconds, so near to 0 that the sum of two does not overflow.
    public mutating func time() throws(DamagedFact) -> Int64 {
        let time: Int64 = try integer()
        guard StoredBounds.isTime(time) else { throw DamagedFact() }
        return time
    }

    /// A text of at most 65,535 bytes, which a string of MQTT may have.
    public mutating func name() throws(DamagedFact) -> [UInt8] { try Self.name(text()) }

    /// What is left, as a text of at most 65,535 bytes.
    public mutating func restName() throws(DamagedFact) -> [UInt8] { try Self.name(rest()) }

    private static func name(_ bytes: [UInt8]) throws(DamagedFact) -> [UInt8] {
        guard bytes.count <= StoredBounds.mostText else { throw DamagedFact() }
        return bytes
    }

    /// Requires that a payload fits a packet.
    public static func check(payload: [UInt8]) throws(DamagedFact) {
        guard payload.count <= StoredBounds.mostPayload else { throw DamagedFact() }
    }

    public mutating func text() throws(DamagedFact) -> [UInt8] {
        guard let count = FactLength.read(bytes, &offset), bytes.count - offset >= count else {
            throw DamagedFact()
        }
        offset += count
        return [UInt8](bytes[offset - count..<offset])
    }

    public mutating func rest() -> [UInt8] {
        defer { offset = bytes.count }
        return [UInt8](bytes[offset...])
    }

    public var isAtEnd: Bool { offset == bytes.count }

    /// Requires that nothing is left.
    public func finish() throws(DamagedFact) {
        if !isAtEnd { throw DamagedFact() }
    }

    private mutating func integer<Value: FixedWidthInteger & BitwiseCopyable>()
        throws(DamagedFact) -> Value
    {
        let size = MemoryLayout<Value>.size
        guard bytes.count - offset >= size else { throw DamagedFact() }
        offset += size
        return Value(
            bigEndian: bytes.loadUnaligned(fromByteOffset: offset - size, as: Value.self))
    }
}
