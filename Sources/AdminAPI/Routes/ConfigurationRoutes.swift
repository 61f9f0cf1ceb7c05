import BrokerAPI
import Hummingbird
import PlainText
import PlainText
import RequestText

/// The configuration of the running broker, as its host keeps it.
package protocol ConfigurationControl: Sendable {
    var settings: [ConfiguredSetting] { get }
    /// Gives keys other values until the next start; `nil` gives a key back its configured one. All
    /// or nothing: returns the problems, none when all are in force.
    func change(_ values: [ForeignText: String?]) -> [String]
}

/// The configuration in force.
struct ConfigurationRoutes: Sendable {
    /// Keys that one request may change.
    private static let mostKeys = 64
    /// Bytes of one value.
    private static let longestValue = 4_096

    let control: any ConfigurationControl

    /// `GET` and `PATCH /v1/config`.
    var routes: [Route] { [show, change] }

    private var show: Route {
        Route(method: .get, path: "/v1/config", access: .reading(.untouched)) { _ throws(Problem) in
            try Response.json(ConfiguredSettings(settings: control.settings))
        }
    }

    private var change: Route {
        Route(method: .patch, path: "/v1/config", access: .admin, body: .json) {
            request throws(Problem) in
            let values = try Self.values(try request.json())
            let problems = control.change(values)
            guard problems.isEmpty else {
                throw Problem(
                    .invalidField, problems.joined(separator: " "),
                    field: values.keys.min()?.visible(),
                    fix: "Nothing was changed. GET /v1/config lists the keys and which are "
                        + "reloadable.")
            }
            return try Response.json(
                ConfiguredSettings(
                    settings: control.settings.filter { values[ForeignText($0.key)] != nil }))
        }
    }

    private static func values(_ json: JSONValue) throws(Problem) -> [ForeignText: String?] {
        guard case .object(let members) = json, !members.isEmpty, members.count <= mostKeys else {
            throw Problem(
                .invalidJSON, "The body is no object of 1 to \(mostKeys) keys with their values.",
                fix: #"Send such as {"limits.queue_messages": 2000}."#)
        }
        var values: [ForeignText: String?] = [:]
        for member in members {
            switch member.value {
            case .string(let text):
                // Values are taken apart by characters, which costs the square of what is behind one.
                guard text.utf8.count <= longestValue else {
                    throw Problem(
                        .invalidField,
                        "The value of \(member.name.visible()) has \(text.utf8.count) bytes.",
                        field: member.name.visible(),
                        fix: "Give at most \(longestValue), or write it into the file.")
                }
                values[member.name] = .some(text.string)
            case .number(let digits): values[member.name] = .some(digits)
            case .bool(let flag): values[member.name] = .some(flag ? "true" : "false")
            case .null: values.updateValue(nil, forKey: member.name)
            case .array, .object:
                throw Problem(
                    .invalidField, "The value of \(member.name.visible()) is a list or an object.",
                    field: member.name.visible(), fix: "Give a text, a number, true or false.")
            }
        }
        return values
    }
}
