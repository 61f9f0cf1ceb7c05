import LineFiles
import PlainText

/// The tokens of the HTTP API, one a line:
/// `name scopes created expires sha256:digest`, such as
/// `billing publish 2025-01-31T08:00:00Z never sha256:9f86...`, and behind that the bounds of
/// publishing, if any: `topic:orders/#` for each filter, and `rate:500/s`.
///
/// The tokens themselves are not in it, only their digests: a reader of the file cannot use the API.
package typealias TokenFile = LineFile<TokenLines>
package typealias TokenFileError = LineFileError<TokenLines>

extension LineFile<TokenLines> {
    /// The result of an attempt to add a token.
    package enum Addition: Equatable, Sendable {
        case added
        case nameTaken
        /// The file has ``maximumCount`` tokens.
        case full
    }

    /// Name of the file in the data directory, where it is unless `admin.tokens_file` says otherwise.
    package static var defaultName: String { "tokens" }
    /// Most tokens of a file; bounded because their names occur in logs and metrics.
    package static var maximumCount: Int { 1_000 }

    /// Adds a token at the end, unless its name is taken.
    package mutating func add(_ entry: Entry) -> Addition {
        let entries = entries
        if entries.contains(where: { $0.name == entry.name }) { return .nameTaken }
        if entries.count >= TokenFile.maximumCount { return .full }
        append(entry)
        return .added
    }

    /// Removes a token; false if there is none of that name.
    @discardableResult
    package mutating func remove(_ name: TokenName) -> Bool {
        remove { $0.name == name }
    }
}

/// The lines of a token file.
package struct TokenLines: LineFormat {
    /// A token without its secret.
    package struct Entry: Sendable, Equatable {
        package let name: TokenName
        package let scopes: TokenScopes
        package let created: UTCTime
        /// From this second on the token is refused; `nil` for one that never expires.
        package let expires: UTCTime?
        /// The digest of the whole token, including its prefix.
        package let digest: SHA256Digest
        package let bounds: TokenBounds

        package init(
            name: TokenName, scopes: TokenScopes, created: UTCTime, expires: UTCTime?,
            digest: SHA256Digest, bounds: TokenBounds = .none
        ) {
            self.name = name
            self.scopes = scopes
            self.created = created
            self.expires = expires
            self.digest = digest
            self.bounds = bounds
        }

        /// True if the token has expired by that time.
        package func isExpired(at now: UTCTime) -> Bool {
            expires.map { $0 <= now } ?? false
        }
    }

    package static let noun = "token file"
    package static let creation =
        "making the first token: hermesctl tokens create NAME --scope SCOPE --tokens-file"
    /// Far more than the largest number of tokens needs.
    package static let maximumByteCount = 8 * 1024 * 1024
    package static let threat: String? = "make tokens"

    private static let digestPrefix = "sha256:"
    private static let never = "never"
    private static let topicPrefix = "topic:"
    private static let ratePrefix = "rate:"

    private var lineOfName: [TokenName: Int] = [:]
    private var lineOfDigest: [SHA256Digest: Int] = [:]

    package init() {}

    package mutating func entry(
        on line: ArraySlice<UInt8>, number: Int
    ) throws(Complaint) -> Entry {
        let entry = try Self.parse(line)
        if let first = lineOfName.updateValue(number, forKey: entry.name) {
            throw .duplicateName(entry.name, firstLine: first)
        }
        if let first = lineOfDigest.updateValue(number, forKey: entry.digest) {
            throw .duplicateDigest(firstLine: first)
        }
        if lineOfName.count > TokenFile.maximumCount { throw .tooMany }
        return entry
    }

    private static func parse(_ line: ArraySlice<UInt8>) throws(Complaint) -> Entry {
        guard let text = String(validating: line, as: UTF8.self) else { throw .notUTF8 }
        let fields = text.words
        guard fields.count >= 5 else { throw .fieldCount(fields.count) }
        let name: TokenName
        do throws(TokenNameError) {
            name = try TokenName(fields[0])
        } catch {
            throw .name(error)
        }
        guard let scopes = TokenScopes(parsing: fields[1]) else { throw .scopes(name) }
        guard let created = UTCTime(fields[2]) else { throw .time(name) }
        let expires = UTCTime(fields[3])
        if expires == nil, !fields[3].hasBytes(of: never) { throw .time(name) }
        guard let hexadecimal = fields[4].text(after: digestPrefix),
            let digest = SHA256Digest(hexadecimal: hexadecimal.utf8)
        else { throw .digest(name) }
        guard let bounds = bounds(fields.dropFirst(5)) else { throw .bounds(name) }
        return Entry(
            name: name, scopes: scopes, created: created, expires: expires, digest: digest,
            bounds: bounds)
    }

    /// `nil` for a word that is neither a topic nor a rate, a second rate, or too many topics.
    private static func bounds(_ words: ArraySlice<Substring>) -> TokenBounds? {
        var topics: [TokenTopic] = []
        var rate: TokenRate?
        for word in words {
            if let text = word.text(after: topicPrefix) {
                guard topics.count < TokenBounds.maximumTopicCount, let topic = TokenTopic(text)
                else { return nil }
                topics.append(topic)
            } else if let text = word.text(after: ratePrefix), rate == nil {
                rate = TokenRate(text)
                if rate == nil { return nil }
            } else {
                return nil
            }
        }
        return TokenBounds(topics: topics, rate: rate)
    }

    package static func text(of entry: Entry) -> [UInt8] {
        var fields = [
            entry.name.text, entry.scopes.description, entry.created.description,
            entry.expires?.description ?? never, digestPrefix + entry.digest.hexadecimal,
        ]
        fields += entry.bounds.topics.map { topicPrefix + $0.text }
        if let rate = entry.bounds.rate { fields.append(ratePrefix + rate.description) }
        return Array(fields.joined(separator: " ").utf8)
    }

    /// The reason for which a line is no token.
    package enum Complaint: Error, Equatable, Sendable, CustomStringConvertible {
        case notUTF8
        case fieldCount(Int)
        case name(TokenNameError)
        case scopes(TokenName)
        case time(TokenName)
        case digest(TokenName)
        case bounds(TokenName)
        case duplicateName(TokenName, firstLine: Int)
        case duplicateDigest(firstLine: Int)
        case tooMany

        package var description: String {
            switch self {
            case .notUTF8:
                "the line is not UTF-8. Delete it, or begin a comment with \"#\"."
            case .fieldCount(let count):
                """
                \(count) words stand where a token has 5: name, scopes, created, expires, digest. \
                Begin a comment with "#", or delete the line and make the token with hermesctl \
                tokens create.
                """
            case .name(let error):
                error.description
            case .scopes(let name):
                """
                token "\(name)": the scopes are not publish, read or admin, with commas between \
                them. Correct the second word.
                """
            case .time(let name):
                """
                token "\(name)": a time is not written as 2025-01-31T08:00:00Z (or never, for the \
                expiry). Correct the third and fourth word.
                """
            case .digest(let name):
                """
                token "\(name)": the digest is not sha256: with 64 lower-case hexadecimal digits. \
                Delete the line and make the token with hermesctl tokens create.
                """
            case .bounds(let name):
                """
                token "\(name)": behind the digest stand other words than topic: with a filter, at \
                most \(TokenBounds.maximumTopicCount), and one rate: with a number, such as \
                rate:500/s. Correct them.
                """
            case .duplicateName(let name, let firstLine):
                "token \"\(name)\" is already on line \(firstLine). Delete one of the two lines."
            case .duplicateDigest(let firstLine):
                "the same token is already on line \(firstLine). Delete one of the two lines."
            case .tooMany:
                "there are more than \(TokenFile.maximumCount) tokens. Delete lines."
            }
        }
    }
}
