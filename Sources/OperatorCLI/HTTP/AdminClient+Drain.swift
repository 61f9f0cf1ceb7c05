import BrokerAPI

extension AdminClient {
    func drainStatus() async throws(CommandFailure) -> Answer<DrainStatus> {
        try await get(["v1", "drain"])
    }

    /// Begins to close connections, or changes the rate.
    func startDrain(perSecond: Int) async throws(CommandFailure) -> Answer<DrainStatus> {
        try await send(.post, ["v1", "drain"], json: ["per_second": perSecond])
    }

    /// Lets clients connect again.
    func endDrain() async throws(CommandFailure) -> Answer<DrainStatus> {
        try await delete(["v1", "drain"])
    }
}
