import BrokerAPI

extension AdminClient {
    func drainStatus() async throws(CommandFailure) -> Answer<DrainStatus> {
        try await get(["v1", "drain"])
    }

    private struct DrainRequest: Encodable {
        let perSecond: Int
        let serverReference: String?

        enum CodingKeys: String, CodingKey {
            case perSecond = "per_second"
            case serverReference = "server_reference"
        }
    }

    /// Begins to close connections, or changes the rate and where clients are sent.
    func startDrain(
        perSecond: Int, serverReference: String?
    ) async throws(CommandFailure) -> Answer<DrainStatus> {
        try await send(
            .post, ["v1", "drain"],
            json: DrainRequest(perSecond: perSecond, serverReference: serverReference))
    }

    /// Lets clients connect again.
    func endDrain() async throws(CommandFailure) -> Answer<DrainStatus> {
        try await delete(["v1", "drain"])
    }
}
