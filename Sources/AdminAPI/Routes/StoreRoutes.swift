import BrokerAPI
import Hummingbird
import NIOPosix
import PlainText

/// Operations on the store of a running broker.
struct StoreRoutes: Sendable {
    let broker: any BrokerControl
    /// `nil` for a broker without a data directory, as in tests.
    let bans: BanBook?

    /// `POST /v1/store/accept-loss` and `POST /v1/backup`.
    var routes: [Route] { [acceptLoss, backup] }

    private var acceptLoss: Route {
        Route(method: .post, path: "/v1/store/accept-loss", access: .admin) {
            _ throws(Problem) in
            try Response.json(AcceptLossResult(accepted: await broker.acceptLoss()))
        }
    }

    /// Answers when the copy is complete; `GET /v1/status` shows the progress.
    private var backup: Route {
        Route(method: .post, path: "/v1/backup", access: .admin, query: ["directory"]) {
            request throws(Problem) in
            let directory = try request.query.required(
                "directory", example: "/var/backups/hermes-1")
            guard directory.utf8.first == UInt8(ascii: "/"), !directory.utf8.contains(0) else {
                throw Problem(
                    .invalidQuery,
                    "The folder \"\(directory.visible())\" is no absolute path.",
                    field: "directory", fix: "Name the folder from / on, on the broker's machine.")
            }
            let bans = try await savedBans()
            do throws(BackupFailure) {
                try await broker.backUp(to: directory, bans: bans)
            } catch {
                throw Problem(error)
            }
            return try Response.json(BackupResult(directory: directory))
        }
    }

    /// The file of bans; `nil` without one.
    private func savedBans() async throws(Problem) -> [UInt8]? {
        guard let bans else { return nil }
        do {
            return try await NIOThreadPool.singleton.runIfActive { try bans.contents() }
        } catch {
            throw BanRoutes.problem("\(error)".visible(limit: 1_024))
        }
    }
}
