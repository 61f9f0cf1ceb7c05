import BrokerAPI
import HermesMessages
import Hummingbird
import MQTTCodec
import PlainText

/// Converts the status of an order into an `Envelope` with an `OrderStatusUpdate`.
struct OrderStatusPublisher: Sendable {
    let publisher: Publisher
    let topicTemplate: TopicTemplate
    let channelTemplate: TopicTemplate
    let qos: QoS
    let maximumTopicLevels: Int

    /// `POST /v1/orders/{order_id}/status`: the body is an `OrderStatusUpdate` in proto3 JSON.
    var route: Route {
        Route(
            method: .post, path: "/v1/orders/{order_id}/status",
            access: .scope(.publish, topics: .checked, rate: .messages), body: .json
        ) { request throws(Problem) in
            let fields = try JSONFields(try request.json(), known: Self.fields)
            let orderID = try identifier(request.parameter("order_id"), field: "order_id")
            if let repeated = try fields.string("order_id"), !repeated.hasBytes(of: orderID) {
                throw fields.wrong(
                    "order_id",
                    "is \"\(repeated.visible())\", but the path says \"\(orderID.visible())\"",
                    fix: "Leave it out of the body.")
            }
            let message = try message(
                fields, orderID: orderID,
                key: try fields.idempotencyKey(header: request.idempotencyKey), request.caller)
            return Response.json(try await publisher.publish(message, for: request.caller))
        }
    }

    /// `POST /v1/orders/batch`: a line for each update.
    var batchRoute: Route {
        let work = MessageBatch(publisher: publisher) { line, caller throws(Problem) in
            let fields = try JSONFields(line: line, known: Self.fields)
            let orderID = try identifier(
                try fields.requiredString("order_id"), field: "order_id")
            return try message(
                fields, orderID: orderID, key: try fields.idempotencyKey(), caller)
        }
        return .batch("/v1/orders/batch", publisher, work)
    }

    static let fields = JSONFields.Known([
        JSONFields.Name(canonical: "order_id", aliases: ["orderId"]),
        JSONFields.Name(canonical: "sales_id", aliases: ["salesId"]),
        JSONFields.Name(canonical: "status"),
        JSONFields.Name(canonical: "reason"),
        JSONFields.Name(canonical: "updated_at_ms", aliases: ["updatedAtMs"]),
        JSONFields.Name(canonical: "details"),
        // Not of the update, but of the message that carries it.
        JSONFields.Name(canonical: "message_id", aliases: ["messageId"]),
        JSONFields.Name(canonical: "expires_in_s", aliases: ["expiresInS"]),
        JSONFields.Name(canonical: "idempotency_key", aliases: ["idempotencyKey"]),
        JSONFields.Name(canonical: "receipts"),
        JSONFields.Name(canonical: "collapse_key", aliases: ["collapseKey"]),
        JSONFields.Name(canonical: "wake"),
    ])

    /// The update as the caller asks for it, without the time that is filled in.
    private func update(
        _ fields: JSONFields, orderID: String
    ) throws(Problem) -> OrderStatusUpdate {
        let salesID = try identifier(try fields.requiredString("sales_id"), field: "sales_id")
        let updatedAtMs = try fields.protoInt64("updated_at_ms")
        if let updatedAtMs, updatedAtMs <= 0 {
            throw fields.wrong(
                "updated_at_ms", "is \(updatedAtMs); it must be a UNIX time in milliseconds",
                fix: "Leave it out to have the time of the request taken.")
        }
        return OrderStatusUpdate(
            orderID: orderID, salesID: salesID, status: try status(fields),
            reason: try fields.string("reason") ?? "", updatedAtMs: updatedAtMs ?? 0,
            details: try fields.stringMap("details") ?? [:])
    }

    private func status(_ fields: JSONFields) throws(Problem) -> OrderStatus {
        let found: String
        do {
            switch fields.value("status") {
            case .string(let name):
                if let status = try? OrderStatus(name: name) { return status }
                found = "\"\(name.visible())\""
                throw UnknownOrderStatus()
            case .number(let text):
                found = text.visible()
                guard let number = JSONFields.wholeNumber(text) else { throw UnknownOrderStatus() }
                return try OrderStatus(number: number)
            case nil: found = "missing"
            case .some(let other): found = other.kindName
            }
        } catch {
            throw fields.wrong(
                "status", "is \(found), which is no status of an order",
                fix: "Known statuses: \(UnknownOrderStatus.known).")
        }
        throw fields.wrong(
            "status", "is \(found); it must be the name or number of a status",
            fix: "Known statuses: \(UnknownOrderStatus.known).")
    }

    /// An identifier becomes one topic level, so it must not be empty or contain a separator.
    private func identifier(_ text: String, field: String) throws(Problem) -> String {
        if text.isEmpty {
            throw Problem(
                .invalidField, "The field \(field) is empty.", field: field,
                fix: "Give the identifier; it becomes a level of the topic name.")
        }
        if text.utf8.contains(where: { "/+#\0".utf8.contains($0) }) {
            throw Problem(
                .invalidField,
                "The field \(field) is \"\(text.visible())\"; it cannot hold `/`, `+`, `#` or NUL.",
                field: field, fix: "It becomes one level of the topic name; use another identifier."
            )
        }
        return text
    }

    private func message(
        _ fields: JSONFields, orderID: String, key: String?, _ caller: Caller?
    ) throws(Problem) -> PreparedMessage {
        var update = try update(fields, orderID: orderID)
        let identifiers = ["sales_id": update.salesID, "order_id": update.orderID]
        let topic = try PublishTopic(
            topicTemplate.filled(identifiers), maximumLevels: maximumTopicLevels, field: "sales_id")
        let channel = channelTemplate.filled(identifiers)
        let id = publisher.messageID(try fields.messageID())
        let seconds = try fields.integer("expires_in_s", in: Publisher.expirySeconds)
        // One look at the clock, so that a message lives exactly as long as was asked for.
        let now = publisher.now()
        let expiresAtMs = publisher.expiry(inSeconds: seconds, after: now)
        let collapseKey = try fields.collapseKey()
        let (asked, encoded): ([UInt8], [UInt8])
        do {
            asked = try update.encoded()
            if update.updatedAtMs == 0 { update.updatedAtMs = now }
            let envelope = Envelope(
                messageID: id.text, topic: topic.text, channel: channel,
                publishedAtMs: now, expiresAtMs: expiresAtMs,
                collapseKey: collapseKey ?? "", contentType: OrderStatusUpdate.contentType,
                payload: try update.encoded())
            encoded = try envelope.encoded()
        } catch {
            // Identifiers have been checked, so the error is in the reason or a detail.
            throw Problem(
                .invalidField, "The field \(error).", field: error.field,
                fix: "Send shorter text, or fewer details.")
        }
        var publication = Publication(
            topic: topic.bytes, payload: encoded, qos: qos, expiresAtMs: expiresAtMs,
            sequence: SequenceStamp(channel: Array(channel.utf8), tag: Envelope.sequenceTag))
        publication.collapseKey = collapseKey.map { CollapseKey.name($0, topic: topic.bytes) }
        publication.wake = try fields.wake()
        publisher.follow(&publication, try fields.bool("receipts"), id)
        publication.identity = PublishIdentity(
            of: publication, content: asked, expiresInSeconds: seconds, id: id, key: key,
            caller: caller)
        return PreparedMessage(publication: publication, id: id)
    }
}
