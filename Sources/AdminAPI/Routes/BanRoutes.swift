import Addresses
import BanFiles
import BrokerAPI
import Credentials
import Hummingbird
import Logging
import NIOPosix
import OperatorLog
import PlainText

/// Clients, users and addresses that are shut out.
struct BanRoutes: Sendable {
    /// `nil` for a broker without a data directory, as in tests.
    let book: BanBook?
    let broker: any BrokerControl
    /// UNIX time in milliseconds.
    let now: @Sendable () -> Int64
    let logger: Logger

    /// `GET` and `POST /v1/bans`, `DELETE /v1/bans/{id}`.
    var routes: [Route] { [list, add, lift] }

    static let fields = JSONFields.Known(
        ["client_id", "user_name", "address", "for_s", "reason"].map {
            JSONFields.Name(canonical: $0)
        })
    /// 100 years.
    private static let longest: Int64 = 100 * 365 * 86_400

    private var list: Route {
        Route(
            method: .get, path: "/v1/bans", access: .reading(.refused), query: ["limit", "cursor"]
        ) { request throws(Problem) in
            let time = now()
            let table = try existingBook().table
            let bans = table.bans.filter { !$0.isExpired(atMs: time) }
            let (page, next) = try request.query.page(of: bans) { $0.id.text }
            let models = page.map { BanModel($0, hits: table.hits[$0.id]) }
            return try Response.json(BanList(bans: models, next: next))
        }
    }

    private var add: Route {
        Route(method: .post, path: "/v1/bans", access: .admin, body: .json) {
            request throws(Problem) in
            let fields = try JSONFields(try request.json(), known: Self.fields)
            let target = try Self.target(fields)
            let seconds = try fields.integer("for_s", in: 1...Self.longest)
            let reason = try Self.reason(fields)
            let author = request.caller?.name ?? ""
            let time = now()
            let (addition, table) = try await onFile { (book) throws(BanFileError) in
                try book.add(
                    target, seconds: seconds, reason: reason, author: author, nowMs: time)
            }
            guard case .added(let ban, let isReplaced) = addition else {
                throw Problem(
                    .tooManyBans,
                    "There are \(BanFile.maximumCount) bans, or \(BanFile.maximumByteCount) bytes "
                        + "of them, and no more can be.",
                    fix: "Lift some, DELETE /v1/bans/{id}, or ban a network at once.")
            }
            log("Banned", ban)
            let closed = try await putInForce(table)
            var response = try Response.json(
                BanCreated(ban: BanModel(ban, hits: table.hits[ban.id]), disconnected: closed))
            if !isReplaced { response.status = .created }
            return response
        }
    }

    private var lift: Route {
        Route(method: .delete, path: "/v1/bans/{id}", access: .admin) {
            request throws(Problem) in
            let text = request.parameter("id")
            let time = now()
            guard let id = Ban.ID(text) else { throw Self.unknown(text) }
            let hits = try existingBook().table.hits[id]
            let (lifted, table) = try await onFile { (book) throws(BanFileError) in
                try book.lift(id, nowMs: time)
            }
            _ = try await putInForce(table)
            guard let lifted else { throw Self.unknown(text) }
            log("Ban lifted", lifted)
            return try Response.json(BanLifted(lifted: BanModel(lifted, hits: hits)))
        }
    }

    // MARK: The request

    private static func target(_ fields: JSONFields) throws(Problem) -> Ban.Target {
        let client = try fields.string("client_id")
        let user = try fields.string("user_name")
        let address = try fields.string("address")
        guard [client, user, address].count(where: { $0 != nil }) == 1 else {
            throw Problem(
                .invalidField, "A ban is of one client identifier, user name or address.",
                fix: "Give exactly one of the fields client_id, user_name and address.")
        }
        if let client {
            return .client(try ClientIDText(client, field: "client_id").bytes)
        }
        if let user {
            guard (1...BanFile.maximumNameBytes).contains(user.utf8.count), !user.utf8.contains(0)
            else {
                throw fields.wrong(
                    "user_name", "is no user name",
                    fix: "Give 1 to \(BanFile.maximumNameBytes) bytes of UTF-8 without NUL.")
            }
            return .user(Array(user.utf8))
        }
        let text = address ?? ""
        guard let network = IPNetwork(text) else {
            throw fields.wrong(
                "address", "is \"\(text.visible())\", which is neither an address nor a network",
                fix: "Give an address such as 192.0.2.7 or 2001:db8::1, or a network such as "
                    + "192.0.2.0/24 whose bits behind the prefix are 0.")
        }
        return .network(network)
    }

    private static func reason(_ fields: JSONFields) throws(Problem) -> String {
        let reason = try fields.string("reason") ?? ""
        guard reason.utf8.count <= BanFile.maximumReasonBytes else {
            throw fields.wrong(
                "reason", "has \(reason.utf8.count) bytes",
                fix: "Give at most \(BanFile.maximumReasonBytes).")
        }
        return reason
    }

    // MARK: Carrying it out

    /// Hands the table to the data plane, and returns how many connections it has closed. The command
    /// is urgent, so that a queue full of other requests does not hold it up.
    private func putInForce(_ table: BanTable) async throws(Problem) -> Int {
        do throws(Problem) {
            return try await broker.ask { .setBans(table, $0) }
        } catch {
            guard error.kind == .overloaded else { throw error }
            throw Problem(
                .overloaded,
                "The change is in the file of bans, and the broker is too busy to put it in force.",
                fix: "Send the request again after the seconds named in Retry-After; a repeat is "
                    + "harmless.",
                headers: [.retryAfter: "1"])
        }
    }

    /// Says what was done; who did it stands in the line about the request.
    private func log(_ message: Logger.Message, _ ban: Ban) {
        logger.info(
            message,
            metadata: [
                LogKeys.ban: "\(ban.id.text)", LogKeys.banKind: "\(ban.target.kind.name)",
                LogKeys.banTarget: "\(ban.target.text)",
                LogKeys.banExpires:
                    "\(ban.expires.map { "\(UTCTime(clamping: $0))" } ?? "never")",
                LogKeys.banReason: "\(ban.reason)",
            ])
    }

    private func existingBook() throws(Problem) -> BanBook {
        guard let book else { throw Self.problem("This broker keeps no bans.") }
        return book
    }

    /// Uses the file on a thread that may wait for a disk.
    private func onFile<Value: Sendable>(
        _ work: @escaping @Sendable (BanBook) throws(BanFileError) -> Value
    ) async throws(Problem) -> Value {
        let book = try existingBook()
        do {
            return try await NIOThreadPool.singleton.runIfActive { try work(book) }
        } catch {
            throw Self.problem("\(error)".visible(limit: 1_024))
        }
    }

    static func problem(_ detail: String) -> Problem {
        Problem(
            .banFile, detail,
            fix: "See to the file \(BanFile.name) in the data directory on the broker's machine, "
                + "and ask again.",
            headers: [.retryAfter: "5"])
    }

    private static func unknown(_ text: String) -> Problem {
        Problem(
            .banNotFound, "There is no ban \"\(text.visible())\".", field: "id",
            fix: "GET /v1/bans lists those there are.")
    }
}
