import BrokerAPI

extension AdminClient {
    /// What became of notifications, and how their senders are.
    func wakes() async throws(CommandFailure) -> Answer<WakeStatus> {
        try await get(["v1", "wakes"])
    }

    /// Devices, at most so many; those of a client are few.
    func devices(of clientID: String?, limit: Int) async throws(CommandFailure) -> DeviceList {
        if let clientID {
            let answer: Answer<DeviceList> = try await get(
                ["v1", "devices"], query: [("client_id", clientID)])
            return answer.model
        }
        let (devices, next) = try await gather(["v1", "devices"], limit: limit) {
            (page: DeviceList) in (page.devices, page.next)
        }
        return DeviceList(devices: devices, next: next)
    }

    func device(
        of clientID: String, named name: String?
    ) async throws(CommandFailure) -> Answer<DeviceModel> {
        try await get(["v1", "clients", clientID, "device"], query: Self.query(name))
    }

    private static func query(_ name: String?) -> [(name: String, value: String)] {
        name.map { [("name", $0)] } ?? []
    }

    func register(
        _ device: DeviceOrder, of clientID: String
    ) async throws(CommandFailure) -> Answer<DeviceModel> {
        try await send(.put, ["v1", "clients", clientID, "device"], json: device)
    }

    func forgetDevice(of clientID: String, named name: String?) async throws(CommandFailure) {
        try await remove(["v1", "clients", clientID, "device"], query: Self.query(name))
    }

    /// Sends to a device again; how many needed that, 0 or 1.
    func release(
        _ release: DeviceRelease, of clientID: String, named name: String?
    ) async throws(CommandFailure) -> Answer<ReleasedDevices> {
        try await post(
            ["v1", "clients", clientID, "device", release.rawValue], query: Self.query(name))
    }

    /// Sends to all devices again, or to those of an app and an environment.
    func releaseAll(
        _ release: DeviceRelease, bundle: String?, environment: Device.Environment?
    ) async throws(CommandFailure) -> Answer<ReleasedDevices> {
        let query = [("bundle", bundle), ("environment", environment?.name)]
        return try await post(
            ["v1", "devices", release.rawValue],
            query: query.compactMap { name, value in value.map { (name, $0) } })
    }

    /// Sends a notification now and tells its end.
    func tryWake(
        of clientID: String, named name: String?
    ) async throws(CommandFailure) -> Answer<WakeTrial> {
        try await post(["v1", "clients", clientID, "device", "test"], query: Self.query(name))
    }
}

/// Body of `PUT /v1/clients/{id}/device`.
struct DeviceOrder: Encodable, Sendable {
    var name: String?
    var kind: String
    var token: String
    var bundle: String?
    var environment: String?
    var userName: String?
    var timeZone: String?

    enum CodingKeys: String, CodingKey {
        case name, kind, token, bundle, environment
        case userName = "user_name"
        case timeZone = "time_zone"
    }
}
