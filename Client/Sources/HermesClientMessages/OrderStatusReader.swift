import SwiftProtobuf

/// Reads the payloads of Envelopes that tell where an order stands.
package enum OrderStatusReader {
    /// The media type of such a payload.
    package static let contentType = "application/protobuf; proto=hermes.v1.OrderStatusUpdate"

    /// `nil` if `contentType` names another payload, or the payload is none.
    package static func update(
        contentType: String, payload: some SwiftProtobufContiguousBytes
    ) -> Hermes_V1_OrderStatusUpdate? {
        guard contentType == Self.contentType else { return nil }
        return try? Hermes_V1_OrderStatusUpdate(serializedBytes: payload)
    }

    /// The JSON that proto3's mapping gives: names in camelCase, 64-bit numbers as strings, fields
    /// of default value left out.
    package static func json(_ update: Hermes_V1_OrderStatusUpdate) -> String? {
        try? update.jsonString()
    }
}
