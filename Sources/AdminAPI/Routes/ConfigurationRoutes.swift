import BrokerAPI
import Hummingbird
import PlainText
import RequestText

/// The configuration of the running broker, as its host keeps it.
package protocol ConfigurationControl: Sendable {
    var settings: [ConfiguredSetting] { get }
    /// Gives keys other values until the next start; `nil` gives a key back its configured one. All
    /// or nothing: returns the problems, none when all are in force.
    func change(_ values: [String: String?]) -> [String]
}

/// The configuration in force.
struct ConfigurationRoutes: Sendable {
    /// Keys that one request may change.
    private static let mostKeys = 64

    let control: any ConfigurationControl

    /// `GET` and `PATCH /v1/config`.
    var routes: [Route] { [show, change] }

    private var show: Route {
        Route(method: .get, path: "/v1/config", access: .scope(.read)) { _ throws(Problem) in
            try Response.json(ConfiguredSettings(settings: control.settings))
        }
    }

    private var change: Route {
        Route(method: .patch, path: "/v1/config", access: .scope(.admin), body: .json) {
            request throws(Problem) in
            let values = try Self.values(try request.json())
            let problems = control.change(values)
            guard problems.isEmpty else {
                throw Problem(
                    .invalidField, problems.joined(separator: " "), field: values.keys.sorted()[0],
                    fix: "Nothing was changed. GET /v1/config lists the keys and which are "
                        + "reloadable.")
            }
            return try Response.json(
                ConfiguredSettings(settings: control.settings.filter { values[$0.key] != nil }))
        }
    }

    private static func values(_ json: JSONValue) throws(Problem) -> [String: String?] {
        guard case .object(let members) = json, !members.isEmpty, members.count <= mostKeys else {
            throw Problem(
                .invalidJSON, "The body is no object of 1 to \(mostKeys) keys with their values.",
                fix: #"Send such as {"limits.queue_messages": 2000}."#)
        }
        var values: [String: String?] = [:]
        for member in members {
            switch member.value {
            case .string(let text): values[member.name] = .some(text)
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
