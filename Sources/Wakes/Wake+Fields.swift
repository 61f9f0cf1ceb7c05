import BrokerAPI
import PlainText
import RequestText

extension Wake {
    /// The texts, numbers and flags that the rule names, of a payload that is a JSON object.
    var includedFields: [(name: String, value: JSONValue)] {
        guard let names = rule?.fields, !names.isEmpty, !payload.isEmpty,
            case .object(let members)? = try? JSONParser.parse(payload)
        else { return [] }
        return names.compactMap { name in
            let wanted = ForeignText(name)
            guard let member = members.first(where: { $0.name == wanted }) else { return nil }
            switch member.value {
            case .string, .number, .bool: return (name, member.value)
            case .null, .array, .object: return nil
            }
        }
    }

    /// The name of the notification in its usual form, 8-4-4-4-12 hexadecimal digits.
    var notificationName: String {
        UUIDText.text(high: notificationID.high, low: notificationID.low)
    }
}
