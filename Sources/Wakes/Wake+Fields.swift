import BrokerAPI
import PlainText
import RequestText

/// What the payload of a message says of the fields that a rule names.
struct PayloadFields {
    private let members: [JSONMember]

    /// Reads a payload; one that is no JSON object has no fields.
    init(_ wake: Wake) {
        let names = (wake.rule?.fields ?? []) + (wake.rule?.arguments ?? [])
        guard !names.isEmpty, !wake.payload.isEmpty,
            case .object(let members)? = try? JSONParser.parse(wake.payload)
        else {
            self.members = []
            return
        }
        self.members = members
    }

    /// A text, number or flag of a name.
    private func value(_ name: String) -> JSONValue? {
        let wanted = ForeignText(name)
        guard let member = members.first(where: { $0.name == wanted }) else { return nil }
        switch member.value {
        case .string, .number, .bool: return member.value
        case .null, .array, .object: return nil
        }
    }

    /// The fields of these names that are there.
    func values(_ names: [String]) -> [(name: String, value: JSONValue)] {
        names.compactMap { name in value(name).map { (name, $0) } }
    }

    /// The values of these names as words; an empty one for each that is not there, so that the
    /// others keep their places.
    func words(_ names: [String]) -> [String] {
        names.map { name in
            switch value(name) {
            case .string(let text)?: text.string
            case .number(let text)?: text
            case .bool(let flag)?: flag ? "true" : "false"
            case .null?, .array?, .object?, nil: ""
            }
        }
    }
}

extension Wake {

    /// The name of the notification in its usual form, 8-4-4-4-12 hexadecimal digits.
    var notificationName: String {
        UUIDText.text(high: notificationID.high, low: notificationID.low)
    }
}
