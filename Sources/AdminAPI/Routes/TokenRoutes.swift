import BrokerAPI
import Credentials
import Hummingbird
import NIOPosix
import PlainText

/// The tokens of the token file: the same file under the same lock as `hermesctl tokens`.
struct TokenRoutes: Sendable {
    /// `nil` without a token file.
    let path: String?
    /// UNIX time in milliseconds.
    let now: @Sendable () -> Int64

    /// `POST` and `GET /v1/tokens`, `DELETE /v1/tokens/{name}`.
    var routes: [Route] { [create, list, revoke] }

    static let fields = JSONFields.Known(
        ["name", "scopes", "topics", "rate", "expires_in_s"].map {
            JSONFields.Name(canonical: $0)
        })
    /// 100 years.
    private static let longestLife: Int64 = 100 * 365 * 86_400

    private var create: Route {
        Route(method: .post, path: "/v1/tokens", access: .admin, body: .json) {
            request throws(Problem) in
            let secret = TokenSecret.prefix + TokenSecret.make()
            let entry = try self.entry(
                JSONFields(try request.json(), known: Self.fields),
                digest: SHA256Digest(of: Array(secret.utf8)))
            let addition = try await onFile { path throws(TokenFileError) in
                try TokenFile.update(path: path, creating: true, lockTimeout: Self.patience) {
                    $0.add(entry)
                }
            }
            switch addition {
            case .added: break
            case .nameTaken:
                throw Problem(
                    .tokenExists, "There is a token \"\(entry.name)\" already.", field: "name",
                    fix: "Choose another name, or revoke that one: DELETE /v1/tokens/\(entry.name)."
                )
            case .full:
                throw Problem(
                    .tooManyTokens,
                    "There are \(TokenFile.maximumCount) tokens, and no more can be.",
                    fix: "Revoke some: DELETE /v1/tokens/NAME.")
            }
            var response = try Response.json(
                TokenCreated(token: secret, summary: TokenSummary(entry, at: time)))
            response.status = .created
            return response
        }
    }

    private var list: Route {
        Route(method: .get, path: "/v1/tokens", access: .admin) { _ throws(Problem) in
            let file = try await onFile { path throws(TokenFileError) in
                do throws(TokenFileError) {
                    return try TokenFile.load(path: path)
                } catch .missing {
                    // No token has been made yet, which is no error.
                    return TokenFile()
                }
            }
            return try Response.json(
                TokenList(tokens: file.entries.map { TokenSummary($0, at: time) }))
        }
    }

    private var revoke: Route {
        Route(method: .delete, path: "/v1/tokens/{name}", access: .admin) {
            request throws(Problem) in
            let text = request.parameter("name")
            guard let name = try? TokenName(text),
                try await remove(name)
            else {
                throw Problem(
                    .tokenNotFound, "There is no token \"\(text.visible())\".", field: "name",
                    fix: "GET /v1/tokens lists those there are.")
            }
            return try Response.json(TokenRevoked(revoked: name.text))
        }
    }

    // MARK: The request

    private var time: UTCTime { UTCTime(clamping: now() / 1_000) }

    private func entry(
        _ fields: JSONFields, digest: SHA256Digest
    ) throws(Problem) -> TokenFile.Entry {
        let name = try self.name(fields)
        let scopes = try self.scopes(fields)
        let bounds = try self.bounds(fields)
        guard bounds == .none || scopes.grant(.publish) && !scopes.grant(.admin) else {
            throw fields.wrong(
                bounds.topics.isEmpty ? "rate" : "topics",
                "bounds publishing, and the scopes are \(scopes)",
                fix: "Leave it out, or give the scope publish without admin.")
        }
        let seconds = try fields.integer("expires_in_s", in: 60...Self.longestLife)
        let created = time
        return TokenFile.Entry(
            name: name, scopes: scopes, created: created,
            expires: seconds.map { UTCTime(clamping: created.unixSeconds + $0) }, digest: digest,
            bounds: bounds)
    }

    private func name(_ fields: JSONFields) throws(Problem) -> TokenName {
        let text = try fields.requiredString("name")
        do {
            return try TokenName(text)
        } catch {
            throw fields.wrong(
                "name", "is \"\(text.visible())\", which cannot name a token",
                fix:
                    "Use 1 to \(TokenName.maximumByteCount) letters, digits, `.`, `_` and `-`, and "
                    + "not \(TokenName.admin).")
        }
    }

    private func scopes(_ fields: JSONFields) throws(Problem) -> TokenScopes {
        let words = try fields.strings("scopes") ?? []
        guard let scopes = TokenScopes(parsing: words.joined(separator: ",")),
            scopes.names.count == words.count
        else {
            throw fields.wrong(
                "scopes", "holds no scope, one twice, or an unknown one",
                fix: "Give at least one of \"publish\", \"read\" and \"admin\".")
        }
        return scopes
    }

    private func bounds(_ fields: JSONFields) throws(Problem) -> TokenBounds {
        var topics: [TokenTopic] = []
        for text in try fields.strings("topics") ?? [] {
            guard topics.count < TokenBounds.maximumTopicCount, let topic = TokenTopic(text) else {
                throw fields.wrong(
                    "topics", "holds \"\(text.visible())\", which is one too many or no filter",
                    fix: "Give at most \(TokenBounds.maximumTopicCount), each \(TokenTopic.rules).")
            }
            topics.append(topic)
        }
        guard let text = try fields.string("rate") else {
            return TokenBounds(topics: topics, rate: nil)
        }
        guard let rate = TokenRate(text) else {
            throw fields.wrong(
                "rate", "is \"\(text.visible())\", which is no rate",
                fix: "Give \(TokenRate.rules).")
        }
        return TokenBounds(topics: topics, rate: rate)
    }

    // MARK: The file

    /// The longest wait for another program's change.
    private static let patience = Duration.seconds(2)

    /// False if there is no such token.
    private func remove(_ name: TokenName) async throws(Problem) -> Bool {
        try await onFile { path throws(TokenFileError) in
            do throws(TokenFileError) {
                return try TokenFile.update(
                    path: path, creating: false, lockTimeout: Self.patience
                ) { $0.remove(name) }
            } catch .missing {
                return false
            }
        }
    }

    /// Uses the file on a thread that may wait for a disk.
    private func onFile<Value: Sendable>(
        _ work: @escaping @Sendable (String) throws(TokenFileError) -> Value
    ) async throws(Problem) -> Value {
        guard let path else { throw Self.problem("This broker has no token file.") }
        do {
            return try await NIOThreadPool.singleton.runIfActive { try work(path) }
        } catch {
            throw Self.problem("\(error)".visible())
        }
    }

    private static func problem(_ detail: String) -> Problem {
        Problem(
            .tokenFile, detail,
            fix: "See to the file on the broker's machine (admin.tokens_file), and ask again.",
            headers: [.retryAfter: "5"])
    }
}

extension TokenSummary {
    init(_ entry: TokenFile.Entry, at now: UTCTime) {
        self.init(
            name: entry.name.text, scopes: entry.scopes.names,
            topics: entry.bounds.topics.map(\.text), rate: entry.bounds.rate?.description,
            created: entry.created.description, expires: entry.expires?.description,
            expired: entry.isExpired(at: now))
    }
}
