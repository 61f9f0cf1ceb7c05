import Credentials
import PlainText

/// A user in a request: the name, and a password or its hash.
struct UserOrder: BatchItem {
    enum Secret: Sendable {
        case password(String)
        case hash(PasswordHash)
    }

    let name: UserName
    let secret: Secret

    /// A password counts as 16 lines, because its hash takes long: so the results of some come
    /// before those of all, and another caller's password waits for a few hashes alone.
    var byteCount: Int {
        switch secret {
        case .password: LineGroup<UserOrder>.fullBytes / 16
        case .hash(let hash): name.bytes.count + hash.encoded.utf8.count
        }
    }

    /// The fields of `PUT /v1/users/{name}`, and with `name` those of a line of an import.
    static let fields = known(["password", "password_hash"])
    static let fieldsOfLine = known(["name", "password", "password_hash"])

    private static func known(_ names: [String]) -> JSONFields.Known {
        JSONFields.Known(names.map { JSONFields.Name(canonical: $0) })
    }

    init(name: UserName, _ fields: JSONFields) throws(Problem) {
        self.name = name
        let password = try fields.string("password")
        let hash = try fields.string("password_hash")
        switch (password, hash) {
        case (let password?, nil):
            guard (1...SecretBytes.maximumByteCount).contains(password.utf8.count) else {
                throw fields.wrong(
                    "password", "has \(password.utf8.count) bytes",
                    fix: "Give 1 to \(SecretBytes.maximumByteCount).")
            }
            secret = .password(password)
        case (nil, let hash?):
            do throws(PasswordHashSyntaxError) {
                secret = .hash(try PasswordHash(parsing: Array(hash.utf8)))
            } catch {
                // The text is not repeated: it may be a password.
                throw fields.wrong(
                    "password_hash", "cannot be used: \(error)",
                    fix: "Give a line's part behind the name, as hermesctl users add writes it.")
            }
        case (nil, nil), (_?, _?):
            throw Problem(
                .invalidField, "A user has one password.",
                field: password == nil ? "password" : "password_hash",
                fix: "Give exactly one of the fields password and password_hash.")
        }
    }

    /// A line of an import.
    init(line fields: JSONFields) throws(Problem) {
        try self.init(name: Self.name(try fields.requiredString("name")), fields)
    }

    static func name(_ text: String) throws(Problem) -> UserName {
        do throws(UserNameError) {
            return try UserName(text)
        } catch {
            throw Problem(
                .invalidField, "The user name \"\(text.visible())\" cannot be used: \(error)",
                field: "name", fix: "Choose another name.")
        }
    }
}
