/// The tokens of the HTTP API, one a line:
/// `name scopes created expires sha256:digest`, such as
/// `billing publish 2025-01-31T08:00:00Z never sha256:9f86...`.
///
/// Lines that begin with `#` (after blanks) are comments, and blank lines are allowed; both keep their
/// place when the file is changed. Any other line is an error with its number: nothing that is malformed
/// ever becomes a token. The tokens themselves are not in it, only their digests: who reads the file
/// cannot use the API.
package struct TokenFile: Sendable, Equatable {
    /// One token, as far as it is kept.
    package struct Entry: Sendable, Equatable {
        package let name: TokenName
        package let scopes: TokenScopes
        package let created: UTCTime
        /// From this second on the token is refused; `nil` for one that stays.
        package let expires: UTCTime?
        /// Of the whole token, its prefix included.
        package let digest: SHA256Digest

        package init(
            name: TokenName, scopes: TokenScopes, created: UTCTime, expires: UTCTime?,
            digest: SHA256Digest
        ) {
            self.name = name
            self.scopes = scopes
            self.created = created
            self.expires = expires
            self.digest = digest
        }

        /// Whether the token is too old at that time.
        package func isExpired(at now: UTCTime) -> Bool {
            expires.map { $0 <= now } ?? false
        }
    }

    /// What became of an attempt to add a token.
    package enum Addition: Equatable, Sendable {
        case added
        case nameTaken
        /// There are ``maximumCount`` already.
        case full
    }

    private enum Line: Sendable, Equatable {
        /// A comment or a blank line, without its line end.
        case kept([UInt8])
        case token(Entry)
    }

    /// The most tokens that a file holds: the names of all of them can stand in logs and metrics.
    package static let maximumCount = 1_000

    private static let digestPrefix = "sha256:"
    private static let never = "never"

    private var lines: [Line] = []
    /// Why more people than the owner may read the file that this was loaded from, and what to do;
    /// `nil` when that is not so.
    package internal(set) var accessWarning: String?

    /// A file without tokens.
    package init() {}

    /// Reads a file's contents; `path` is for the error, which names every malformed line.
    package init(parsing contents: [UInt8], path: String) throws(TokenFileError) {
        var problems: [TokenFileProblem] = []
        var lineOfName: [TokenName: Int] = [:]
        var lineOfDigest: [SHA256Digest: Int] = [:]
        for (index, bytes) in Self.split(contents).enumerated() {
            let number = index + 1
            do throws(TokenFileProblem.Kind) {
                let line = try Self.parse(bytes)
                if case .token(let entry) = line {
                    if let first = lineOfName.updateValue(number, forKey: entry.name) {
                        throw .duplicateName(entry.name, firstLine: first)
                    }
                    if let first = lineOfDigest.updateValue(number, forKey: entry.digest) {
                        throw .duplicateDigest(firstLine: first)
                    }
                    if lineOfName.count > Self.maximumCount { throw .tooMany }
                }
                lines.append(line)
            } catch {
                problems.append(TokenFileProblem(line: number, kind: error))
            }
        }
        if !problems.isEmpty { throw .malformed(path: path, problems) }
    }

    /// All tokens, in the file's order.
    package var entries: [Entry] {
        lines.compactMap { line in
            if case .token(let entry) = line { entry } else { nil }
        }
    }

    /// The file as it is stored: every line ends with a line feed.
    package var contents: [UInt8] {
        var bytes: [UInt8] = []
        for line in lines {
            switch line {
            case .kept(let text): bytes += text
            case .token(let entry): bytes += Self.text(of: entry).utf8
            }
            bytes.append(UInt8(ascii: "\n"))
        }
        return bytes
    }

    /// Adds a token at the end, under a name that is free.
    package mutating func add(_ entry: Entry) -> Addition {
        let entries = entries
        if entries.contains(where: { $0.name == entry.name }) { return .nameTaken }
        if entries.count >= Self.maximumCount { return .full }
        lines.append(.token(entry))
        return .added
    }

    /// Removes a token; false when there is none of that name.
    @discardableResult
    package mutating func remove(_ name: TokenName) -> Bool {
        let index = lines.firstIndex { line in
            if case .token(let entry) = line { entry.name == name } else { false }
        }
        guard let index else { return false }
        lines.remove(at: index)
        return true
    }

    private static func text(of entry: Entry) -> String {
        let fields = [
            entry.name.text, entry.scopes.description, entry.created.description,
            entry.expires?.description ?? never, digestPrefix + entry.digest.hexadecimal,
        ]
        return fields.joined(separator: " ")
    }

    /// The lines without their line ends; no empty line after the last line end.
    private static func split(_ contents: [UInt8]) -> [ArraySlice<UInt8>] {
        var lines = contents.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        if lines.last?.isEmpty == true { lines.removeLast() }
        return lines
    }

    private static func parse(
        _ line: ArraySlice<UInt8>
    ) throws(TokenFileProblem.Kind) -> Line {
        if line.last == UInt8(ascii: "\r") { throw .carriageReturn }
        let blanks = line.prefix { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
        if blanks.count == line.count || line[blanks.endIndex] == UInt8(ascii: "#") {
            return .kept(Array(line))
        }
        guard let text = String(validating: line, as: UTF8.self) else { throw .notUTF8 }
        let fields = text.split { $0 == " " || $0 == "\t" }
        guard fields.count == 5 else { throw .fieldCount(fields.count) }
        let name: TokenName
        do throws(TokenNameError) {
            name = try TokenName(fields[0])
        } catch {
            throw .name(error)
        }
        guard let scopes = TokenScopes(parsing: fields[1]) else { throw .scopes(name) }
        guard let created = UTCTime(fields[2]) else { throw .time(name) }
        let expires = UTCTime(fields[3])
        if expires == nil, fields[3] != never { throw .time(name) }
        guard fields[4].hasPrefix(digestPrefix),
            let digest = SHA256Digest(hexadecimal: fields[4].dropFirst(digestPrefix.count).utf8)
        else { throw .digest(name) }
        return .token(
            Entry(name: name, scopes: scopes, created: created, expires: expires, digest: digest))
    }
}
