import BrokerAPI
import HermesMessages
import PlainText
import RequestText

/// What the payload of a message says of the fields that a rule names.
struct PayloadFields {
    private let members: [JSONMember]

    /// The most bytes of a value that becomes part of a text's key.
    private static let mostKeyBytes = 64

    /// Reads a payload, a JSON object or an order's status; another has no fields.
    init(_ wake: Wake) {
        guard wake.rule?.readsPayload == true, !wake.payload.isEmpty else {
            members = []
            return
        }
        if let update = OrderStatusUpdate(envelope: wake.payload) {
            members = Self.members(of: update)
        } else if case .object(let members)? = try? JSONParser.parse(wake.payload) {
            self.members = members
        } else {
            members = []
        }
    }

    /// An order's status as the HTTP API takes it, with both spellings of its names; each detail
    /// stands beside them.
    private static func members(of update: OrderStatusUpdate) -> [JSONMember] {
        let texts = [
            ("orderId", update.orderID), ("order_id", update.orderID),
            ("salesId", update.salesID), ("sales_id", update.salesID),
            ("status", update.status.shortName), ("reason", update.reason),
        ]
        let time = JSONValue.number("\(update.updatedAtMs)")
        return texts.map { JSONMember(name: ForeignText($0), value: .string(ForeignText($1))) }
            + ["updatedAtMs", "updated_at_ms"].map {
                JSONMember(name: ForeignText($0), value: time)
            }
            + update.details.map { key, value in
                JSONMember(
                    name: ForeignText("details." + key.string), value: .string(ForeignText(value)))
            }
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
    func words(_ names: [String]) -> [String] { names.map(word) }

    private func word(_ name: String) -> String {
        switch value(name) {
        case .string(let text)?: text.string
        case .number(let text)?: text
        case .bool(let flag)?: flag ? "true" : "false"
        case .null?, .array?, .object?, nil: ""
        }
    }

    /// The key of a text, with the value of each field that it names in braces; `nil` when one of them
    /// is not there, or is none of the letters, digits, dots, dashes and underscores of a key.
    func key(_ template: String?) -> String? {
        guard let template else { return nil }
        var key = ""
        for (place, part) in template.split(
            separator: "{", omittingEmptySubsequences: false
        ).enumerated() {
            guard place > 0, let end = part.utf8.firstIndex(of: 0x7D) else {
                key += part
                continue
            }
            let text = word(String(part[..<end]))
            guard Self.isPartOfKey(text) else { return nil }
            key += text + part[part.utf8.index(after: end)...]
        }
        return key
    }

    private static func isPartOfKey(_ word: String) -> Bool {
        (1...mostKeyBytes).contains(word.utf8.count)
            && word.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
                default: false
                }
            }
    }
}

extension Wake {
    /// True when the service tries once and keeps nothing: what has no time, and a call that says
    /// none, since it is over when it comes late.
    var isTriedOnce: Bool {
        switch kind {
        case .voip, .pushToTalk: (rule?.expiresInSeconds ?? 0) == 0
        case .alert, .background, .badge, .liveActivity: rule?.expiresInSeconds == 0
        }
    }

    /// The name of the notification in its usual form, 8-4-4-4-12 hexadecimal digits.
    var notificationName: String {
        UUIDText.text(high: notificationID.high, low: notificationID.low)
    }
}
