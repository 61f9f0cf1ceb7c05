import Addresses
import BrokerAPI
import LineFiles
import PlainText
import RequestText

/// The bans, one a line: `id target created expires by:author why:reason`, such as
/// `7f3a9c21 client:phone-7 2026-11-25T08:00:00Z 2026-11-25T10:00:00Z by:admin why:floods`.
///
/// The target is `client:`, `user:` or `address:` and a name or network; `expires` may be `never`.
/// Names, authors and reasons are percent-encoded, so that each is one word.
package typealias BanFile = LineFile<BanLines>
package typealias BanFileError = LineFileError<BanLines>

extension LineFile<BanLines> {
    /// Name of the file in the data directory.
    package static var name: String { "bans" }
    /// Most bans of a file; bounded because each change writes all of it.
    package static var maximumCount: Int { 10_000 }
    /// Bytes of a banned client identifier or user name; as many as an MQTT string may have.
    package static var maximumNameBytes: Int { 65_535 }
    /// Bytes of a reason.
    package static var maximumReasonBytes: Int { 512 }

    /// Adds a ban at the end, or puts it in the place of an earlier one of the same target.
    package mutating func add(_ ban: Ban) -> BanAddition {
        let former = entries.first { $0.target == ban.target }
        let kept = Ban(
            id: former?.id ?? ban.id, target: ban.target, created: ban.created,
            expires: ban.expires, reason: ban.reason, author: ban.author)
        let before = self
        if former == nil {
            append(kept)
        } else {
            _ = replace(with: kept) { $0.target == ban.target }
        }
        guard entries.count <= BanFile.maximumCount, contents.count <= BanFile.maximumByteCount
        else {
            self = before
            return .full
        }
        return .added(kept, replaced: former != nil)
    }
}

/// The result of an attempt to add a ban.
package enum BanAddition: Equatable, Sendable {
    /// `replaced` means that the target was banned before: the ban keeps its identifier, and has the
    /// new time and reason.
    case added(Ban, replaced: Bool)
    /// There are as many bans as there can be, or the file would be larger than it may be.
    case full
}

/// The lines of a file of bans.
package struct BanLines: LineFormat {
    package static let noun = "file of bans"
    package static let creation = "banning somebody: hermesctl bans add; the broker writes"
    package static let maximumByteCount = 8 * 1024 * 1024
    package static let threat: String? = "shut clients out, or let banned ones in"

    private static let never = "never"
    private static let clientPrefix = "client:"
    private static let userPrefix = "user:"
    private static let addressPrefix = "address:"
    private static let authorPrefix = "by:"
    private static let reasonPrefix = "why:"

    private var lineOfID: [Ban.ID: Int] = [:]
    private var lineOfTarget: [Ban.Target: Int] = [:]

    package init() {}

    package mutating func entry(
        on line: ArraySlice<UInt8>, number: Int
    ) throws(Complaint) -> Ban {
        let ban = try Self.parse(line)
        if let first = lineOfID.updateValue(number, forKey: ban.id) {
            throw .duplicateID(ban.id, firstLine: first)
        }
        if let first = lineOfTarget.updateValue(number, forKey: ban.target) {
            throw .duplicateTarget(ban.id, firstLine: first)
        }
        if lineOfID.count > BanFile.maximumCount { throw .tooMany }
        return ban
    }

    private static func parse(_ line: ArraySlice<UInt8>) throws(Complaint) -> Ban {
        guard let text = String(validating: line, as: UTF8.self) else { throw .notUTF8 }
        let words = text.words
        guard words.count == 6 else { throw .wordCount(words.count) }
        guard let id = Ban.ID(words[0]) else { throw .id }
        guard let target = target(words[1]) else { throw .target(id) }
        guard let created = UTCTime(words[2]) else { throw .time(id) }
        let expires = UTCTime(words[3])
        if expires == nil, !words[3].hasBytes(of: never) { throw .time(id) }
        guard let author = decoded(words[4], after: authorPrefix),
            let reason = decoded(words[5], after: reasonPrefix)
        else { throw .words(id) }
        return Ban(
            id: id, target: target, created: created.unixSeconds, expires: expires?.unixSeconds,
            reason: reason, author: author)
    }

    private static func target(_ word: Substring) -> Ban.Target? {
        if let name = decoded(word, after: clientPrefix), !name.isEmpty {
            return .client(Array(name.utf8))
        }
        if let name = decoded(word, after: userPrefix), !name.isEmpty {
            return .user(Array(name.utf8))
        }
        return word.text(after: addressPrefix)
            .flatMap { IPNetwork(String($0)) }.map(Ban.Target.network)
    }

    private static func decoded(_ word: Substring, after prefix: String) -> String? {
        word.text(after: prefix).flatMap(percentDecoded)
    }

    package static func text(of ban: Ban) -> [UInt8] {
        let target =
            switch ban.target {
            case .client(let name): clientPrefix + percentEncoded(name)
            case .user(let name): userPrefix + percentEncoded(name)
            case .address(let network): addressPrefix + network.text
            }
        let words = [
            ban.id.text, target, "\(UTCTime(clamping: ban.created))",
            ban.expires.map { "\(UTCTime(clamping: $0))" } ?? never,
            authorPrefix + percentEncoded(ban.author.utf8),
            reasonPrefix + percentEncoded(ban.reason.utf8),
        ]
        return Array(words.joined(separator: " ").utf8)
    }

    /// The reason for which a line is no ban.
    package enum Complaint: Error, Equatable, Sendable, CustomStringConvertible {
        case notUTF8
        case wordCount(Int)
        case id
        case target(Ban.ID)
        case time(Ban.ID)
        case words(Ban.ID)
        case duplicateID(Ban.ID, firstLine: Int)
        case duplicateTarget(Ban.ID, firstLine: Int)
        case tooMany

        package var description: String {
            switch self {
            case .notUTF8:
                "the line is not UTF-8. Delete it, and ban anew: hermesctl bans add."
            case .wordCount(let count):
                """
                \(count) words stand where a ban has 6: id, target, created, expires, by: and why:. \
                Delete the line, and ban anew: hermesctl bans add.
                """
            case .id:
                """
                the first word is not eight hexadecimal digits in lower case. Delete the line, and \
                ban anew: hermesctl bans add.
                """
            case .target(let ban):
                """
                ban \(ban.text): the second word is not client: or user: with a percent-encoded \
                name, or address: with an address or network. Correct it, or delete the line.
                """
            case .time(let ban):
                """
                ban \(ban.text): a time is not written as 2025-01-31T08:00:00Z (or never, for the \
                expiry). Correct the third and fourth word.
                """
            case .words(let ban):
                """
                ban \(ban.text): the last two words are not by: and why: with percent-encoded \
                text. Correct them; both may be without text.
                """
            case .duplicateID(let ban, let firstLine):
                "ban \(ban.text) is already on line \(firstLine). Delete one of the two lines."
            case .duplicateTarget(let ban, let firstLine):
                """
                ban \(ban.text): the same is already banned on line \(firstLine). Delete one of the \
                two lines.
                """
            case .tooMany:
                "there are more than \(BanFile.maximumCount) bans. Delete lines."
            }
        }
    }
}
