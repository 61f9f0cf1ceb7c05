/// An action that a client asks for on a topic.
public enum AccessAction: UInt8, Sendable, CaseIterable {
    case publish = 1
    case subscribe = 2
}

/// One line of an ACL file: the clients it is about, the action, the topics, and whether it allows
/// or denies.
public struct AccessRule: Equatable, Sendable {
    /// The clients that a rule is about, apart from their client identifier.
    public enum Who: Equatable, Sendable {
        /// Every client, with or without a user name.
        case everyone
        /// Clients without a proven user name.
        case anonymous
        /// Clients with any proven user name.
        case anyUser
        case user([UInt8])
    }

    /// Line in the file; counts from 1.
    public let line: Int
    public let isAllow: Bool
    public let who: Who
    /// The only client identifier that the rule is about; `nil` for any.
    public let clientID: [UInt8]?
    public let actions: Set<AccessAction>
    /// The topic filter as written in the file, placeholders included.
    public let filter: [UInt8]
}

extension AccessRule: CustomStringConvertible {
    /// The rule in the file's language, always with the same blanks and quotes; not escaped.
    public var description: String {
        var words = [isAllow ? "allow" : "deny"]
        switch who {
        case .everyone: words.append("everyone")
        case .anonymous: words.append("anonymous")
        case .anyUser: words.append("user *")
        case .user(let name): words.append("user \(Self.word(name))")
        }
        if let clientID { words.append("client \(Self.word(clientID))") }
        if actions.count > 1 {
            words.append("both")
        } else {
            words.append(actions.contains(.publish) ? "publish" : "subscribe")
        }
        words.append(Self.word(filter))
        return words.joined(separator: " ")
    }

    /// Writes a name or filter as the file needs it: in quotes if it would otherwise be read
    /// differently.
    private static func word(_ bytes: [UInt8]) -> String {
        let text = String(decoding: bytes, as: UTF8.self)
        let isPlain =
            !bytes.isEmpty && bytes != [UInt8(ascii: "*")]
            && !bytes.contains { " \t\"".utf8.contains($0) }
        guard !isPlain else { return text }
        var quoted = "\""
        // By scalars: a combining character behind a quote makes it no other byte.
        for scalar in text.unicodeScalars {
            if scalar == "\"" || scalar == "\\" { quoted.append("\\") }
            quoted.unicodeScalars.append(scalar)
        }
        return quoted + "\""
    }
}

/// The client about whom a question is asked. Borrows its bytes for one call.
public struct AccessSubject {
    /// A user name proven by a password or a certificate; `nil` for an anonymous client.
    public let userName: UnsafeRawBufferPointer?
    public let clientID: UnsafeRawBufferPointer

    public init(userName: UnsafeRawBufferPointer?, clientID: UnsafeRawBufferPointer) {
        self.userName = userName
        self.clientID = clientID
    }
}

/// The answer for one client, action and topic, with the rule that decided.
public struct AccessVerdict: Hashable, Sendable, BitwiseCopyable {
    public let isAllowed: Bool
    /// The line of the rule that decided. 0 when no rule fits, in which case the answer is no.
    public let line: UInt32

    /// In place of a line: the topics that the client's login allows decided.
    public static let loginLine = UInt32.max

    /// The rules allow it, or there are none, and the client's login does not.
    public static let deniedByLogin = AccessVerdict(isAllowed: false, line: loginLine)

    public init(isAllowed: Bool, line: UInt32) {
        self.isAllowed = isAllowed
        self.line = line
    }
}

/// The answer for one client and topic filter: how many of its topics the client may receive, and
/// the rule that decided.
public enum SubscriptionVerdict: Hashable, Sendable {
    /// All topics of the filter; `line` is the rule that allows them.
    case whole(line: UInt32)
    /// Some topics of the filter, so that each message must be checked; `line` is the rule that
    /// allows the first of them.
    case part(line: UInt32)
    /// No topic of the filter; `line` is the rule that denies all of them, or 0 when no rule fits.
    case nothing(line: UInt32)
}
