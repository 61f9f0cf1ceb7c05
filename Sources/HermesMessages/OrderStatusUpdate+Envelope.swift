import PlainText
import Structures

extension OrderStatusUpdate {
    /// Reads the update that an Envelope carries; `nil` for bytes that are none, or that carry
    /// something else. Anybody who may publish may have made them.
    package init?(envelope bytes: [UInt8]) {
        let update = bytes.withUnsafeBytes { bytes -> OrderStatusUpdate? in
            var (contentType, payload) = ("", UnsafeRawBufferPointer(rebasing: bytes[..<0]))
            var fields = ProtobufFields(bytes)
            while let (field, value) = fields.next() {
                switch (field, value) {
                case (7, .bytes(let text)): contentType = Self.text(text)
                case (8, .bytes(let bytes)): payload = bytes
                default: continue
                }
            }
            guard !fields.isMalformed, contentType.hasBytes(of: Self.contentType) else {
                return nil
            }
            return OrderStatusUpdate(encoded: payload)
        }
        guard let update else { return nil }
        self = update
    }

    /// Reads what ``encoded()`` makes; a status that is not known yet is unspecified.
    private init?(encoded bytes: UnsafeRawBufferPointer) {
        self.init(orderID: "", salesID: "", status: .unspecified, updatedAtMs: 0)
        var fields = ProtobufFields(bytes)
        while let (field, value) = fields.next() {
            switch (field, value) {
            case (1, .bytes(let text)): orderID = Self.text(text)
            case (2, .bytes(let text)): salesID = Self.text(text)
            case (3, .number(let number)):
                let number = Int32(truncatingIfNeeded: number)
                status = OrderStatus(rawValue: number) ?? .unspecified
            case (4, .bytes(let text)): reason = Self.text(text)
            case (5, .number(let number)): updatedAtMs = Int64(bitPattern: number)
            case (6, .bytes(let entry)):
                guard let (key, value) = Self.detail(entry) else { return nil }
                details[key] = value
            default: continue
            }
        }
        guard !fields.isMalformed else { return nil }
    }

    /// An entry of the map: the key is its field 1, the value its field 2.
    private static func detail(
        _ bytes: UnsafeRawBufferPointer
    ) -> (key: ForeignText, value: String)? {
        var (key, content) = ("", "")
        var fields = ProtobufFields(bytes)
        while let (field, value) = fields.next() {
            switch (field, value) {
            case (1, .bytes(let bytes)): key = text(bytes)
            case (2, .bytes(let bytes)): content = text(bytes)
            default: continue
            }
        }
        return fields.isMalformed ? nil : (ForeignText(key), content)
    }

    private static func text(_ bytes: UnsafeRawBufferPointer) -> String {
        String(decoding: bytes, as: UTF8.self)
    }
}
