/// The users who may connect, one a line: `name:$argon2id$v=19$m=...,t=...,p=...$salt$hash`.
///
/// Lines that begin with `#` (after blanks) are comments, and blank lines are allowed; both keep
/// their place when the file is changed. Any other line is an error with its number: nothing that
/// is malformed ever becomes a user, and a file without users denies everyone.
package struct PasswordFile: Sendable, Equatable {
    /// One user and what their password must match.
    package struct Entry: Sendable, Equatable {
        package let userName: UserName
        package let hash: PasswordHash

        package init(userName: UserName, hash: PasswordHash) {
            self.userName = userName
            self.hash = hash
        }
    }

    private enum Line: Sendable, Equatable {
        /// A comment or a blank line, without its line end.
        case kept([UInt8])
        case user(Entry)
    }

    private var lines: [Line] = []
    /// Why more people than the owner may read or change the file that this was loaded from, and
    /// what to do; `nil` when that is not so.
    package internal(set) var accessWarning: String?

    /// A file without users.
    package init() {}

    /// Reads a file's contents; `path` is for the error, which names every malformed line.
    package init(parsing contents: [UInt8], path: String) throws(PasswordFileError) {
        var problems: [PasswordFileProblem] = []
        var lineOfUser: [UserName: Int] = [:]
        let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
        if contents.starts(with: byteOrderMark) {
            problems.append(PasswordFileProblem(line: 1, kind: .byteOrderMark))
        }
        let text = contents.starts(with: byteOrderMark) ? contents.dropFirst(3) : contents[...]
        for (index, line) in Self.split(text).enumerated() {
            do throws(PasswordFileProblem.Kind) {
                let parsed = try Self.parse(line)
                if case .user(let entry) = parsed {
                    if let first = lineOfUser[entry.userName] {
                        throw .duplicate(entry.userName, firstLine: first)
                    }
                    lineOfUser[entry.userName] = index + 1
                }
                lines.append(parsed)
            } catch {
                problems.append(PasswordFileProblem(line: index + 1, kind: error))
            }
        }
        if !problems.isEmpty { throw .malformed(path: path, problems) }
    }

    /// All users, in the file's order.
    package var entries: [Entry] {
        lines.compactMap { line in
            if case .user(let entry) = line { entry } else { nil }
        }
    }

    /// The file as it is stored: every line ends with a line feed.
    package var contents: [UInt8] {
        var bytes: [UInt8] = []
        for line in lines {
            switch line {
            case .kept(let text):
                bytes += text
            case .user(let entry):
                bytes += entry.userName.bytes
                bytes.append(UInt8(ascii: ":"))
                bytes += entry.hash.encoded.utf8
            }
            bytes.append(UInt8(ascii: "\n"))
        }
        return bytes
    }

    /// Adds a user at the end, or gives an existing one the new hash in place. True when the user
    /// was there before.
    @discardableResult
    package mutating func set(_ userName: UserName, to hash: PasswordHash) -> Bool {
        let entry = Entry(userName: userName, hash: hash)
        guard let index = lineIndex(of: userName) else {
            lines.append(.user(entry))
            return false
        }
        lines[index] = .user(entry)
        return true
    }

    /// Removes a user; false when there is none of that name.
    @discardableResult
    package mutating func remove(_ userName: UserName) -> Bool {
        guard let index = lineIndex(of: userName) else { return false }
        lines.remove(at: index)
        return true
    }

    private func lineIndex(of userName: UserName) -> Int? {
        lines.firstIndex { line in
            if case .user(let entry) = line { entry.userName == userName } else { false }
        }
    }

    /// The lines without their line ends; no empty line after the last line end.
    private static func split(_ contents: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
        var lines = contents.split(
            separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        if lines.last?.isEmpty == true { lines.removeLast() }
        return lines
    }

    private static func parse(
        _ line: ArraySlice<UInt8>
    ) throws(PasswordFileProblem.Kind) -> Line {
        if line.last == UInt8(ascii: "\r") { throw .carriageReturn }
        let blanks = line.prefix { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
        if blanks.count == line.count || line[blanks.endIndex] == UInt8(ascii: "#") {
            return .kept(Array(line))
        }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { throw .noColon }
        let userName: UserName
        do throws(UserNameError) {
            userName = try UserName(line[..<colon])
        } catch {
            throw .userName(error)
        }
        do throws(PasswordHashSyntaxError) {
            let hash = try PasswordHash(parsing: line[(colon + 1)...])
            return .user(Entry(userName: userName, hash: hash))
        } catch {
            throw .hash(userName, error)
        }
    }
}
