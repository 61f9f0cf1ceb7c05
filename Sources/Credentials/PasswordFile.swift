import LineFiles

/// The users who may connect, one a line: `name:$argon2id$v=19$m=...,t=...,p=...$salt$hash`.
///
/// A file without users denies everyone.
package typealias PasswordFile = LineFile<PasswordLines>
package typealias PasswordFileError = LineFileError<PasswordLines>
package typealias PasswordFileProblem = LineFileProblem<PasswordLines>

extension LineFile<PasswordLines> {
    /// Adds a user at the end, or gives an existing one the new hash in place. True if the user was
    /// there before.
    @discardableResult
    package mutating func set(_ userName: UserName, to hash: PasswordHash) -> Bool {
        let entry = Entry(userName: userName, hash: hash)
        if replace(with: entry, where: { $0.userName == userName }) { return true }
        append(entry)
        return false
    }

    /// Does the same for many, in a time that grows with the file and not with file and changes.
    package mutating func setAll(_ changes: [Entry]) -> [Bool] {
        let present = Set(entries.map(\.userName))
        var replacing: [UserName: Entry] = [:]
        var adding: [Entry] = []
        var added: [UserName: Int] = [:]
        let existed = changes.map { change in
            if let place = added[change.userName] {
                adding[place] = change
                return true
            }
            if present.contains(change.userName) {
                replacing[change.userName] = change
                return true
            }
            added[change.userName] = adding.count
            adding.append(change)
            return false
        }
        if !replacing.isEmpty { replaceEach { replacing[$0.userName] } }
        for entry in adding { append(entry) }
        return existed
    }

    /// Removes a user; false if there is none of that name.
    @discardableResult
    package mutating func remove(_ userName: UserName) -> Bool {
        remove { $0.userName == userName }
    }
}

/// The lines of a password file.
package struct PasswordLines: LineFormat {
    /// A user, and the hash that their password must match.
    package struct Entry: Sendable, Equatable {
        package let userName: UserName
        package let hash: PasswordHash

        package init(userName: UserName, hash: PasswordHash) {
            self.userName = userName
            self.hash = hash
        }
    }

    package static let noun = "password file"
    package static let creation =
        "adding the first user: hermesctl users add NAME --password-file"
    /// Far more than a broker's users need: some 500,000 lines.
    package static let maximumByteCount = 64 * 1024 * 1024
    package static let threat: String? = nil

    private var lineOfUser: [UserName: Int] = [:]

    package init() {}

    package mutating func entry(
        on line: ArraySlice<UInt8>, number: Int
    ) throws(Complaint) -> Entry {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { throw .noColon }
        let userName: UserName
        do throws(UserNameError) {
            userName = try UserName(line[..<colon])
        } catch {
            throw .userName(error)
        }
        let hash: PasswordHash
        do throws(PasswordHashSyntaxError) {
            hash = try PasswordHash(parsing: line[(colon + 1)...])
        } catch {
            throw .hash(userName, error)
        }
        if let first = lineOfUser[userName] { throw .duplicate(userName, firstLine: first) }
        lineOfUser[userName] = number
        return Entry(userName: userName, hash: hash)
    }

    package static func text(of entry: Entry) -> [UInt8] {
        entry.userName.bytes + [UInt8(ascii: ":")] + Array(entry.hash.encoded.utf8)
    }

    /// The reason for which a line is no user.
    package enum Complaint: Error, Equatable, Sendable, CustomStringConvertible {
        case noColon
        case userName(UserNameError)
        case hash(UserName, PasswordHashSyntaxError)
        case duplicate(UserName, firstLine: Int)

        package var description: String {
            switch self {
            case .noColon:
                """
                there is no ":" between a name and a hash. Write name:hash, begin a comment with \
                "#", or delete the line.
                """
            case .userName(let error):
                error.description
            case .hash(let userName, let error):
                """
                user "\(userName)": \(error). Delete the line and set the password with \
                hermesctl users add.
                """
            case .duplicate(let userName, let firstLine):
                "user \"\(userName)\" is already on line \(firstLine). Delete one of the two lines."
            }
        }
    }
}
