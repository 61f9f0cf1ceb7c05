import CHermesProtos
import PlainText

/// Tells that an order has reached a status (`hermes.v1.OrderStatusUpdate`).
package struct OrderStatusUpdate: Hashable, Sendable {
    package var orderID: String
    package var salesID: String
    package var status: OrderStatus
    /// A reason for people to read; empty when there is none.
    package var reason: String
    /// UNIX time in milliseconds.
    package var updatedAtMs: Int64
    package var details: [ForeignText: String]

    /// Media type of the encoded bytes, for ``Envelope/contentType``.
    package static let contentType = "application/protobuf; proto=hermes.v1.OrderStatusUpdate"

    package init(
        orderID: String, salesID: String, status: OrderStatus, reason: String = "",
        updatedAtMs: Int64, details: [ForeignText: String] = [:]
    ) {
        self.orderID = orderID
        self.salesID = salesID
        self.status = status
        self.reason = reason
        self.updatedAtMs = updatedAtMs
        self.details = details
    }

    /// Encodes the message. Details are ordered by key, so that equal updates have equal bytes.
    ///
    /// - Throws: ``MessageEncodingError`` when a text holds NUL, which protobuf-c cannot carry.
    package func encoded() throws(MessageEncodingError) -> [UInt8] {
        var arena = ProtobufArena()
        var message = Hermes__V1__OrderStatusUpdate()
        hermes__v1__order_status_update__init(&message)
        message.order_id = try arena.string(orderID, field: "order_id")
        message.sales_id = try arena.string(salesID, field: "sales_id")
        message.status = Hermes__V1__OrderStatus(UInt32(bitPattern: status.rawValue))
        message.reason = try arena.string(reason, field: "reason")
        message.updated_at_ms = updatedAtMs

        let entries = arena.array(
            of: UnsafeMutablePointer<Hermes__V1__OrderStatusUpdate__DetailsEntry>?.self,
            count: details.count)
        for (index, (key, value)) in details.sorted(by: { $0.key < $1.key }).enumerated() {
            let entry = arena.value(Hermes__V1__OrderStatusUpdate__DetailsEntry())
            hermes__v1__order_status_update__details_entry__init(entry)
            entry.pointee.key = try arena.string(key.string, field: "details")
            entry.pointee.value = try arena.string(value, field: "details")
            entries[index] = entry
        }
        message.n_details = details.count
        message.details = entries.baseAddress

        let size = hermes__v1__order_status_update__get_packed_size(&message)
        return arena.packed(size) { hermes__v1__order_status_update__pack(&message, $0) }
    }
}
