import CNgHTTP2

/// The header fields of a request. Values are copied by nghttp2; names are of this program and
/// live for ever.
package struct RequestFields {
    private struct Field {
        let name: StaticString
        let value: Range<Int>
        /// True for a value that differs from request to request, which would only fill the
        /// compressor's table.
        let isUnique: Bool
    }

    private var values: [UInt8] = []
    private var fields: [Field] = []

    package init() {
        values.reserveCapacity(1_024)
        fields.reserveCapacity(12)
    }

    package mutating func removeAll() {
        values.removeAll(keepingCapacity: true)
        fields.removeAll(keepingCapacity: true)
    }

    package mutating func add(_ name: StaticString, _ value: String, isUnique: Bool = false) {
        let begin = values.count
        values.append(contentsOf: value.utf8)
        fields.append(Field(name: name, value: begin..<values.count, isUnique: isUnique))
    }

    /// Adds a field whose value is a text and bytes in lower-case hexadecimal digits.
    package mutating func add(
        _ name: StaticString, _ prefix: StaticString, hexadecimal bytes: [UInt8]
    ) {
        let begin = values.count
        values.append(
            contentsOf: UnsafeBufferPointer(
                start: prefix.utf8Start, count: prefix.utf8CodeUnitCount))
        for byte in bytes {
            values.append(Self.digit(byte >> 4))
            values.append(Self.digit(byte & 15))
        }
        fields.append(Field(name: name, value: begin..<values.count, isUnique: true))
    }

    /// Adds a field whose value is a UUID (RFC 9562, section 4).
    package mutating func add(_ name: StaticString, uuid: (high: UInt64, low: UInt64)) {
        let begin = values.count
        for index in 0..<32 {
            if [8, 12, 16, 20].contains(index) { values.append(UInt8(ascii: "-")) }
            let half = index < 16 ? uuid.high : uuid.low
            values.append(
                Self.digit(UInt8(truncatingIfNeeded: half >> UInt64(60 - 4 * (index & 15))) & 15))
        }
        fields.append(Field(name: name, value: begin..<values.count, isUnique: true))
    }

    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }

    package func withFields<Result>(
        _ body: (UnsafePointer<nghttp2_nv>?, Int) -> Result
    ) -> Result {
        values.withUnsafeBufferPointer { values in
            // nghttp2 reads through these pointers, whatever their type says.
            let base = UnsafeMutablePointer(mutating: values.baseAddress)
            let list = fields.map { field in
                var flags = NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue
                if field.isUnique { flags |= NGHTTP2_NV_FLAG_NO_INDEX.rawValue }
                return nghttp2_nv(
                    name: UnsafeMutablePointer(mutating: field.name.utf8Start),
                    value: base.map { $0 + field.value.lowerBound },
                    namelen: field.name.utf8CodeUnitCount, valuelen: field.value.count,
                    flags: UInt8(flags))
            }
            return list.withUnsafeBufferPointer { body($0.baseAddress, $0.count) }
        }
    }
}
