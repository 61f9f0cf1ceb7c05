import BrokerAPI
import FoundationEssentials

extension AdminClient {
    /// Follows what a trace tells until it is over; `take` gets its lines.
    func trace(
        _ query: [(name: String, value: String)],
        _ take: (TraceLine, [UInt8]) throws(CommandFailure) -> Void
    ) async throws(CommandFailure) {
        var rest: [UInt8] = []
        let response = try await transport.follow(
            AdminRequest(
                method: .get, url: endpoint.url(["v1", "trace"], query: query), token: token)
        ) { part throws(CommandFailure) in
            rest += part
            while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                let line = Array(rest[..<end])
                rest.removeFirst(end + 1)
                // An empty line says only that the broker is there.
                guard !line.isEmpty else { continue }
                guard let model = try? JSONDecoder().decode(TraceLine.self, from: Data(line)) else {
                    throw CommandFailure(
                        .unexpectedAnswer,
                        "\(endpoint) sent a line that is none of a trace. Check that hermesctl and "
                            + "hermesd have the same version.")
                }
                try take(model, line)
            }
        }
        guard (200..<300).contains(response.status) else { throw refusal(response) }
    }
}
