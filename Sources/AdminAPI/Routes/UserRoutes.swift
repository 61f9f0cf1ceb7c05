import BrokerAPI
import Credentials
import Hummingbird
import PlainText

/// The users in the password file, which `hermesctl users` changes too.
struct UserRoutes: Sendable {
    /// `nil` without `password_file`.
    let file: UserFile?
    let broker: any BrokerControl
    let maximumLineBytes: Int
    let hasher = PasswordHasher()
    /// Imports at a time: each holds the results of some lines.
    let imports = BatchPlaces(4)

    /// `GET /v1/users`, `PUT` and `DELETE /v1/users/{name}`, `POST /v1/users/import`.
    var routes: [Route] { [list, set, remove, importing] }

    private var list: Route {
        Route(
            method: .get, path: "/v1/users", access: .admin, query: ["limit", "cursor"]
        ) { request throws(Problem) in
            let (page, next) = try request.query.page(of: try await existingFile().entries()) {
                $0.userName.text
            }
            return try Response.json(
                UserPage(
                    users: page.map {
                        UserSummary(
                            name: $0.userName.text, hash: "argon2id \($0.hash.parameters)")
                    },
                    next: next))
        }
    }

    private var set: Route {
        Route(
            method: .put, path: "/v1/users/{name}", access: .admin, body: .json,
            query: ["disconnect"]
        ) { request throws(Problem) in
            let file = try existingFile()
            let disconnects = try request.query.bool("disconnect") ?? false
            let name = try UserOrder.name(request.parameter("name"))
            let order = try UserOrder(
                name: name, try JSONFields(try request.json(), known: UserOrder.fields))
            let hash =
                switch order.secret {
                case .hash(let hash): hash
                case .password(let password): try await hasher.hash(password)
                }
            guard
                case .changed(let existed) = try await file.set([
                    UserFile.Change(userName: name, hash: hash)
                ])
            else { throw Problem.tooManyUsers }
            let isNew = existed.first == false
            let closed = disconnects ? try await disconnect(name) : 0
            var response = try Response.json(
                UserSet(name: name.text, created: isNew, disconnected: closed))
            if isNew { response.status = .created }
            return response
        }
    }

    private var remove: Route {
        Route(
            method: .delete, path: "/v1/users/{name}", access: .admin,
            query: ["disconnect"]
        ) { request throws(Problem) in
            let file = try existingFile()
            let disconnects = try request.query.bool("disconnect") ?? false
            let text = request.parameter("name")
            guard let name = try? UserName(text), try await file.remove(name) else {
                throw Problem(
                    .userNotFound, "There is no user \"\(text.visible())\".", field: "name",
                    fix: "GET /v1/users lists those there are.")
            }
            let closed = disconnects ? try await disconnect(name) : 0
            return try Response.json(UserRemoved(removed: name.text, disconnected: closed))
        }
    }

    private var importing: Route {
        Route(
            method: .post, path: "/v1/users/import", access: .admin, body: .lines, query: ["answer"]
        ) { request throws(Problem) in
            guard let stream = request.stream else {
                preconditionFailure("/v1/users/import got no lines to read")
            }
            let work = UserImport(file: try existingFile(), hasher: hasher)
            let place = try imports.take()
            let batch = BatchStream(
                work: work, source: stream, caller: request.caller,
                maximumLineBytes: maximumLineBytes)
            return try await batch.response(request, place)
        }
    }

    /// Closes the connections of a user; returns their number.
    private func disconnect(_ name: UserName) async throws(Problem) -> Int {
        try await broker.ask { .disconnectUser(name.bytes, $0) }
    }

    private func existingFile() throws(Problem) -> UserFile {
        guard let file else {
            throw Problem(
                .noPasswordFile,
                "This broker has no password file, so that it knows no users.",
                fix: "Set password_file, and start it again; hermesctl users add NAME "
                    + "--password-file FILE makes such a file.")
        }
        return file
    }
}
