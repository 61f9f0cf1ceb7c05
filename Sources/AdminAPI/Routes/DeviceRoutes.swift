import BrokerAPI
import Hummingbird
import PlainText

/// Devices of clients, which notifications wake.
struct DeviceRoutes: Sendable {
    let broker: any BrokerControl
    let senders: @Sendable () -> WakeSenders

    /// `GET`, `PUT` and `DELETE /v1/clients/{id}/device`, `POST /v1/clients/{id}/device/test`,
    /// `GET /v1/devices`, `GET /v1/wakes`, and what ``releases`` has.
    var routes: [Route] { [show, register, remove, test, list, status] + releases }

    static let path = "/v1/clients/{id}/device"
    private static let fields = JSONFields.Known(
        ["name", "kind", "token", "bundle", "environment", "user_name", "time_zone"].map {
            JSONFields.Name(canonical: $0)
        })

    private var show: Route {
        Route(method: .get, path: Self.path, access: .reading(.refused), query: ["name"]) {
            request throws(Problem) in
            let clientID = try Self.clientID(of: request)
            let name = try Self.name(of: request)
            let device = try await broker.ask(ShowDevice(clientID: clientID, name: name))
            guard let device else { throw try await missing(clientID, name) }
            return try Response.json(DeviceModel(device))
        }
    }

    /// The answer about a client without a device, which may have had one.
    private func missing(_ clientID: String, _ name: String) async throws(Problem) -> Problem {
        let history: ClientHistory = try await broker.ask { .history(clientID: clientID, $0) }
        let gone = history.events.first { $0.kind == .deviceGone }
        return Problem.noDevice(clientID, name, gone: gone?.reason)
    }

    private var register: Route {
        Route(
            method: .put, path: Self.path,
            access: .scope(.publish, topics: .refused, rate: .requests), body: .json
        ) {
            request throws(Problem) in
            let clientID = try Self.clientID(of: request)
            let device = try Self.device(try JSONFields(try request.json(), known: Self.fields))
            switch try await broker.ask(SetDevice(clientID: clientID, device: device)) {
            case .stored: break
            case .noRoom: throw Problem.devicesFull
            case .unknownTimeZone: throw Problem.unknownTimeZone(device.timeZone)
            }
            let stored = try await broker.ask(ShowDevice(clientID: clientID, name: device.name))
            guard let stored else { throw Problem.noDevice(clientID, device.name) }
            return try Response.json(DeviceModel(stored))
        }
    }

    private var remove: Route {
        Route(
            method: .delete, path: Self.path,
            access: .scope(.publish, topics: .refused, rate: .requests), query: ["name"]
        ) {
            request throws(Problem) in
            let clientID = try Self.clientID(of: request)
            let name = try Self.name(of: request)
            let wasThere = try await broker.ask(RemoveDevice(clientID: clientID, name: name))
            guard wasThere else { throw Problem.noDevice(clientID, name) }
            return Response(status: .noContent)
        }
    }

    /// Waits for the push service, at most some minutes.
    private var test: Route {
        Route(
            method: .post, path: "\(Self.path)/test",
            access: .scope(.publish, topics: .refused, rate: .requests), query: ["name"]
        ) {
            request throws(Problem) in
            let clientID = try Self.clientID(of: request)
            let name = try Self.name(of: request)
            let trial = try await broker.ask(TryWake(clientID: clientID, name: name))
            guard var trial else { throw Problem.noDevice(clientID, name) }
            if trial.outcome == WakeResult.later.name {
                trial.reason = try await obstacle(for: clientID, name) ?? trial.reason
            }
            return try Response.json(trial)
        }
    }

    /// Why the device of a client can be sent nothing now; `nil` when its sender sends.
    private func obstacle(
        for clientID: String, _ name: String
    ) async throws(Problem) -> String? {
        let device = try await broker.ask(ShowDevice(clientID: clientID, name: name))
        return device.flatMap {
            senders().obstacle(
                for: $0.device.kind, bundle: $0.device.bundle,
                environment: $0.device.environment.name)
        }
        .map { "\($0) (hermesctl devices status)" }
    }

    private var list: Route {
        Route(
            method: .get, path: "/v1/devices", access: .reading(.refused),
            query: ["limit", "cursor", "client_id"]
        ) { request throws(Problem) in
            if let clientID = request.query["client_id"] {
                _ = try ClientIDText(clientID, field: "client_id")
                let page = try await broker.ask(ListDevices(ofClient: clientID))
                return try Response.json(
                    DeviceList(devices: page.devices.map { DeviceModel($0) }, next: nil))
            }
            let (devices, next) = try await request.query.gather {
                place, limit throws(Problem) -> ([DeviceDetail], String?) in
                let page = try await broker.ask(ListDevices(from: place, limit: limit))
                return (page.devices, page.next)
            }
            return try Response.json(
                DeviceList(devices: devices.map { DeviceModel($0) }, next: next))
        }
    }

    private var status: Route {
        Route(method: .get, path: "/v1/wakes", access: .reading(.untouched)) { _ throws(Problem) in
            let figures: BrokerFigures = try await broker.ask { .figures($0) }
            return try Response.json(WakeStatus(figures, senders()))
        }
    }

    static func clientID(of request: RouteRequest) throws(Problem) -> String {
        let text = request.parameter("id")
        _ = try ClientIDText(text, field: "id")
        return text
    }

    /// The name of the device that a request is about; empty for the usual one.
    static func name(of request: RouteRequest) throws(Problem) -> String {
        let name = request.query["name"] ?? ""
        guard Device.isName(name.utf8) else {
            throw Problem(
                .invalidQuery, "The query parameter name is \"\(name.visible())\".", field: "name",
                fix: nameFix)
        }
        return name
    }

    private static let nameFix =
        "Give at most \(Device.mostNameBytes) letters, digits, dots, dashes and underscores."

    private static func device(_ fields: JSONFields) throws(Problem) -> Device {
        let kind = try choice("kind", fields, Device.Kind.allCases, \.name) ?? .apns
        let environment =
            try choice("environment", fields, Device.Environment.allCases, \.name) ?? .production
        let text = try fields.requiredString("token")
        let token: [UInt8]
        switch kind {
        case .apns:
            guard let bytes = hexadecimal(text) else {
                throw fields.wrong(
                    "token", "is not hexadecimal",
                    fix: "Give the device token's bytes as pairs of hexadecimal digits.")
            }
            token = bytes
        case .webhook, .fcm: token = Array(text.utf8)
        }
        guard kind != .fcm || environment == .production else {
            throw fields.wrong(
                "environment", "is sandbox, which only Apple has", fix: "Leave it out.")
        }
        guard Device.isToken(token, for: kind) else {
            throw fields.wrong(
                "token",
                "is no token: it may have 1 to \(Device.mostTokenBytes) bytes, and for fcm and "
                    + "webhook neither blanks nor other than plain characters",
                fix: "Give it as the notification service did.")
        }
        let bundle = try fields.string("bundle") ?? ""
        guard Device.isBundle(Array(bundle.utf8), for: kind) else {
            throw fields.wrong(
                "bundle",
                "is \"\(bundle.visible())\"; it must be the app's bundle identifier, or its package name",
                fix: "Give such as com.example.app.")
        }
        let name = try fields.string("name") ?? ""
        guard Device.isName(name.utf8) else {
            throw fields.wrong("name", "is \"\(name.visible())\"", fix: nameFix)
        }
        let userName = try fields.string("user_name")
        guard (userName ?? "").utf8.count <= Int(UInt16.max) else {
            throw fields.wrong(
                "user_name", "has more than 65535 bytes", fix: "Give the user's name.")
        }
        return Device(
            name: name, kind: kind, token: token, bundle: bundle, environment: environment,
            userName: userName, timeZone: try fields.string("time_zone") ?? "", registeredAtMs: 0)
    }

    private static func choice<Value>(
        _ name: String, _ fields: JSONFields, _ values: [Value], _ text: KeyPath<Value, String>
    ) throws(Problem) -> Value? {
        guard let given = try fields.string(name) else { return nil }
        guard let value = values.first(where: { given.hasBytes(of: $0[keyPath: text]) }) else {
            let known = values.map { $0[keyPath: text] }.joined(separator: " or ")
            throw fields.wrong(
                name, "is \"\(given.visible())\"; it must be \(known)", fix: "Write \(known).")
        }
        return value
    }

    private static func hexadecimal(_ text: String) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count % 2 == 0 else { return nil }
        var bytes: [UInt8] = []
        for place in stride(from: 0, to: digits.count, by: 2) {
            guard let high = Character(UnicodeScalar(digits[place])).hexDigitValue,
                let low = Character(UnicodeScalar(digits[place + 1])).hexDigitValue
            else { return nil }
            bytes.append(UInt8(high << 4 | low))
        }
        return bytes
    }
}

extension Problem {
    static func noDevice(_ clientID: String, _ name: String, gone: String? = nil) -> Problem {
        let named = name.isEmpty ? "no device" : "no device \"\(name.visible())\""
        let gone = gone.map {
            " Its push service said of the last one that it is gone (\($0.visible()))."
        }
        return Problem(
            .deviceNotFound,
            "The client \"\(clientID.visible())\" has \(named).\(gone ?? "")",
            fix: "Register one with PUT, or have its phone publish to $hermes/device.")
    }

    fileprivate static func unknownTimeZone(_ name: String) -> Problem {
        Problem(
            .invalidField, "time_zone is \"\(name.visible())\", which this machine does not know.",
            field: "time_zone",
            fix:
                "Give a name of its zone data (the package tzdata), such as Europe/Berlin, or leave "
                + "it out for that of wakes.time_zone.")
    }

    fileprivate static let devicesFull = Problem(
        .devicesFull,
        "All devices, or those of this user, would take more than they may, or the client has "
            + "\(Device.mostOfClient) of other names; nothing was changed.",
        fix: "Remove devices that are not needed, or raise limits.device_bytes.")
}
