import BrokerAPI
import Hummingbird
import PlainText

/// Devices that are sent to again, although a push service has refused them or wants a pause.
extension DeviceRoutes {
    /// `POST /v1/clients/{id}/device/resume` and `retry`, and `POST /v1/devices/resume` and `retry`.
    var releases: [Route] { DeviceRelease.allCases.flatMap { [releaseOne($0), releaseAll($0)] } }

    private func releaseOne(_ release: DeviceRelease) -> Route {
        Route(
            method: .post, path: "\(Self.path)/\(release.rawValue)",
            access: .scope(.publish, topics: .refused, rate: .requests), query: ["name"]
        ) {
            request throws(Problem) in
            let clientID = try Self.clientID(of: request)
            let name = try Self.name(of: request)
            let isReleased = try await broker.ask(
                ReleaseDevice(clientID: clientID, name: name, release))
            guard let isReleased else { throw Problem.noDevice(clientID, name) }
            return try Response.json(ReleasedDevices(devices: isReleased ? 1 : 0))
        }
    }

    private func releaseAll(_ release: DeviceRelease) -> Route {
        Route(
            method: .post, path: "/v1/devices/\(release.rawValue)", access: .admin,
            query: ["bundle", "environment"]
        ) { request throws(Problem) in
            let names = Device.Environment.allCases.map(\.name)
            let name = try request.query.choice("environment", of: names)
            let environment = name.flatMap { name in
                Device.Environment.allCases.first { $0.name.hasBytes(of: name) }
            }
            var (count, place): (Int, UInt32?) = (0, 0)
            while let from = place {
                let part = try await broker.ask(
                    ReleaseDevices(
                        release, bundle: request.query["bundle"], environment: environment,
                        from: from))
                (count, place) = (count + part.released, part.next)
            }
            return try Response.json(ReleasedDevices(devices: count))
        }
    }
}
