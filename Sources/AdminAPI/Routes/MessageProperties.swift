import FoundationEssentials
import MQTTCodec
import RequestText

/// `properties` of a message: what receivers of MQTT 5.0 get with it (section 3.3.2.3). Receivers of
/// earlier versions get the message without them.
extension JSONFields {
    private static let known = JSONFields.Known(
        [
            "payload_format", "content_type", "response_topic", "correlation_data",
            "user_properties",
        ].map { JSONFields.Name(canonical: $0) })

    /// The most bytes of all properties as encoded.
    private static var mostPropertyBytes: Int { 65_535 }

    /// `properties` as encoded; empty for none. `payload` is the message's, which `payload_format`
    /// speaks of.
    func properties(of payload: [UInt8]) throws(Problem) -> [UInt8] {
        guard let fields = try object("properties", known: Self.known) else { return [] }
        var encoded: [UInt8] = []
        try fields.appendFormat(of: payload, to: &encoded)
        if let type = try fields.propertyText("content_type") {
            Self.append(Property.contentType, type, to: &encoded)
        }
        if let topic = try fields.propertyText("response_topic") {
            guard !topic.isEmpty, !topic.contains(where: { $0 == 0x2B || $0 == 0x23 }) else {
                throw fields.wrong(
                    "response_topic", "is empty or holds a wildcard, `+` or `#` [MQTT-3.3.2-14]",
                    fix: "Name one topic, such as \"answers/7\".")
            }
            Self.append(Property.responseTopic, topic, to: &encoded)
        }
        if let base64 = try fields.string("correlation_data") {
            guard let data = Data(base64Encoded: base64), data.count <= Int(UInt16.max) else {
                throw fields.wrong(
                    "correlation_data", "is not base64 of at most 65535 bytes",
                    fix: "Use the alphabet A-Z a-z 0-9 + / with padding, without line breaks.")
            }
            Self.append(Property.correlationData, [UInt8](data), to: &encoded)
        }
        try fields.appendUserProperties(to: &encoded)
        guard encoded.count <= Self.mostPropertyBytes else {
            throw wrong(
                "properties", "take \(encoded.count) bytes; a message has room for 65535",
                fix: "Put what is large into the payload.")
        }
        return encoded
    }

    private func appendFormat(of payload: [UInt8], to encoded: inout [UInt8]) throws(Problem) {
        switch try string("payload_format") {
        case nil, "bytes": return
        case "text":
            guard String(validating: payload, as: UTF8.self) != nil else {
                throw wrong(
                    "payload_format", "is \"text\", and the payload is no UTF-8 [MQTT-3.3.2-4]",
                    fix: "Leave it out for a payload of bytes.")
            }
            encoded += [PropertyIdentifier.payloadFormatIndicator.rawValue, 1]
        case .some:
            throw wrong(
                "payload_format", "is neither \"text\" nor \"bytes\"",
                fix: "Write \"text\" for a payload of UTF-8, or leave it out.")
        }
    }

    /// `user_properties`: names and values in their order, of which several may have one name.
    private func appendUserProperties(to encoded: inout [UInt8]) throws(Problem) {
        guard let value = value("user_properties") else { return }
        let fix = "Write it as [{\"name\": \"trace\", \"value\": \"7\"}]."
        guard case .array(let elements) = value else {
            throw wrong(
                "user_properties", "is \(value.kindName); it must be an array of objects", fix: fix)
        }
        let known = JSONFields.Known(["name", "value"].map { JSONFields.Name(canonical: $0) })
        for element in elements {
            let pair = try JSONFields(
                element, known: known, subject: "element of \(path)user_properties",
                path: "\(path)user_properties.")
            guard let name = try pair.propertyText("name"),
                let text = try pair.propertyText("value")
            else {
                throw wrong(
                    "user_properties", "has an element without a name or a value", fix: fix)
            }
            encoded.append(PropertyIdentifier.userProperty.rawValue)
            for part in [name, text] {
                encoded += [UInt8(part.count >> 8), UInt8(truncatingIfNeeded: part.count)]
                encoded += part
            }
        }
    }

    /// A text as MQTT has it: at most 65,535 bytes without U+0000 [MQTT-1.5.4-2].
    private func propertyText(_ name: String) throws(Problem) -> [UInt8]? {
        guard let text = try string(name) else { return nil }
        let bytes = Array(text.utf8)
        guard bytes.count <= Int(UInt16.max), !bytes.contains(0) else {
            throw wrong(
                name, "has \(bytes.count) bytes, or U+0000 among them [MQTT-1.5.4-2]",
                fix: "Use at most 65535 bytes of text without U+0000.")
        }
        return bytes
    }

    private static func append(
        _ make: (ByteRange) -> Property, _ bytes: [UInt8], to encoded: inout [UInt8]
    ) {
        bytes.withUnsafeBytes { PropertyEncoder.append(make, $0, to: &encoded) }
    }
}
