import BrokerAPI

extension AdminClient {
    func configuration() async throws(CommandFailure) -> Answer<ConfiguredSettings> {
        try await get(["v1", "config"])
    }

    /// Has the broker read its configuration again.
    func reloadConfiguration() async throws(CommandFailure) -> Answer<ConfigurationReload> {
        try await send(.post, ["v1", "config", "reload"])
    }

    /// Gives keys other values, or back their configured ones; all or nothing.
    func changeConfiguration(
        _ values: [String: String?]
    ) async throws(CommandFailure) -> Answer<ConfiguredSettings> {
        try await send(.patch, ["v1", "config"], json: values)
    }
}
