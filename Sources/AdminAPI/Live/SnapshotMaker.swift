import BrokerAPI
import Hummingbird

/// Makes the events of `GET /v1/events`: a snapshot of the broker, or the problem that it has.
struct SnapshotMaker: Sendable {
    let broker: any BrokerControl
    /// `nil` with plain HTTP.
    let certificates: AdminCertificates?
    /// `nil` without a webhook.
    let webhook: (@Sendable () -> WebhookFigures)?
    /// UNIX time in milliseconds.
    let now: @Sendable () -> Int64
    private let start = ContinuousClock.now

    init(
        broker: any BrokerControl, certificates: AdminCertificates?,
        webhook: (@Sendable () -> WebhookFigures)?, now: @escaping @Sendable () -> Int64
    ) {
        self.broker = broker
        self.certificates = certificates
        self.webhook = webhook
        self.now = now
    }

    /// Asks the broker, and waits for its answers.
    func event() async -> ByteBuffer {
        do throws(Problem) {
            guard let json = jsonLine(try await snapshot()) else {
                throw Problem(
                    .internalError, "The snapshot could not be written as JSON.",
                    fix: "Report this with the log of the broker.")
            }
            return ServerSentEvent.bytes("snapshot", json)
        } catch {
            return ServerSentEvent.bytes("problem", error.line)
        }
    }

    private func snapshot() async throws(Problem) -> BrokerSnapshot {
        var status: BrokerStatus = try await broker.ask { .status($0) }
        status.store = broker.store
        status.webhook = webhook?()
        var figures: BrokerFigures = try await broker.ask { .figures($0) }
        figures.admin.certificate = certificates?.figures
        return BrokerSnapshot(
            status: status, figures: figures, atMs: now(),
            clockMs: Int64((ContinuousClock.now - start) / .milliseconds(1)))
    }
}

/// Events for a stream of server-sent events (`text/event-stream`).
enum ServerSentEvent {
    static let contentType = "text/event-stream"

    /// One event. `json` is one line without its line feed, so that it is one `data` field.
    static func bytes(_ name: StaticString, _ json: ByteBuffer) -> ByteBuffer {
        var event = ByteBuffer()
        event.reserveCapacity(json.readableBytes + 32)
        event.writeStaticString("event: ")
        event.writeStaticString(name)
        event.writeStaticString("\ndata: ")
        event.writeImmutableBuffer(json)
        event.writeStaticString("\n\n")
        return event
    }
}
