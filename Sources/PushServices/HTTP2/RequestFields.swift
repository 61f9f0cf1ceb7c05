import CNgHTTP2
import PlainText

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
            values.append(Hexadecimal.digit(byte >> 4))
            values.append(Hexadecimal.digit(byte))
        }
        fields.append(Field(name: name, value: begin..<values.count, isUnique: true))
    }

    /// Adds a field whose value is a UUID (RFC 9562, section 4).
    package mutating func add(_ name: StaticString, uuid: (high: UInt64, low: UInt64)) {
        let begin = values.count
        UUIDText.forEachByte(uuid.high, uuid.low) { values.append($0) }
        fields.append(Field(name: name, value: begin..<values.count, isUnique: true))
    }

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
