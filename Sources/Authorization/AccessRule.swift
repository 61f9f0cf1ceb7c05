/// What a client wants to do with a topic.
public enum AccessAction: UInt8, Sendable, CaseIterable {
    case publish = 1
    case subscribe = 2
}

/// One line of an ACL file: whom it is about, what they do, with which topics, and whether they may.
public struct AccessRule: Equatable, Sendable {
    /// Whom a rule is about, but for the client identifier.
    public enum Who: Equatable, Sendable {
        /// Every client, with or without a user name.
        case everyone
        /// Clients without a proven user name.
        case anonymous
        /// Clients with any proven user name.
        case anyUser
        case user([UInt8])
    }

    /// Counts from 1.
    public let line: Int
    public let isAllow: Bool
    public let who: Who
    /// The one client identifier that it is about; `nil` for any.
    public let clientIdentifier: [UInt8]?
    public let actions: Set<AccessAction>
    /// As it stands in the file, placeholders included.
    public let filter: [UInt8]
}

extension AccessRule: CustomStringConvertible {
    /// The rule in the words of the file, in one form whatever blanks and quotes the file has; not escaped.
    public var description: String {
        var words = [isAllow ? "allow" : "deny"]
        switch who {
        case .everyone: words.append("everyone")
        case .anonymous: words.append("anonymous")
        case .anyUser: words.append("user *")
        case .user(let name): words.append("user \(Self.word(name))")
        }
        if let clientIdentifier { words.append("client \(Self.word(clientIdentifier))") }
        if actions.count > 1 {
            words.append("both")
        } else {
            words.append(actions.contains(.publish) ? "publish" : "subscribe")
        }
        words.append(Self.word(filter))
        return words.joined(separator: " ")
    }

    /// A name or filter as the file has to write it: in quotes when it would otherwise be read as
    /// something else.
    private static func word(_ bytes: [UInt8]) -> String {
        let text = String(decoding: bytes, as: UTF8.self)
        let isPlain =
            !bytes.isEmpty && bytes != [UInt8(ascii: "*")]
            && !bytes.contains { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\"") }
        guard !isPlain else { return text }
        var quoted = "\""
        for character in text {
            if character == "\"" || character == "\\" { quoted.append("\\") }
            quoted.append(character)
        }
        return quoted + "\""
    }
}

/// Who asks: what the broker knows of a client when it decides. Borrows its bytes for one call.
public struct AccessSubject {
    /// A user name that was proven by a password or a certificate; `nil` for an anonymous client.
    public let userName: UnsafeRawBufferPointer?
    public let clientIdentifier: UnsafeRawBufferPointer

    public init(userName: UnsafeRawBufferPointer?, clientIdentifier: UnsafeRawBufferPointer) {
        self.userName = userName
        self.clientIdentifier = clientIdentifier
    }
}

/// Whether a client may do something with one topic, and which rule said so.
public struct AccessVerdict: Hashable, Sendable, BitwiseCopyable {
    public let isAllowed: Bool
    /// The line of the rule that decided; 0 when none fitted, and so it is denied.
    public let line: UInt32

    public init(isAllowed: Bool, line: UInt32) {
        self.isAllowed = isAllowed
        self.line = line
    }
}

/// How much of what a topic filter matches a client may receive, and which rule said so.
public enum SubscriptionVerdict: Hashable, Sendable {
    /// Every topic that the filter matches, by the rule of this line.
    case whole(line: UInt32)
    /// Some topics, the first of them by the rule of this line; each message has to be checked.
    case part(line: UInt32)
    /// None; the line of the rule that denies all of it, or 0 when none did and nothing is allowed.
    case nothing(line: UInt32)
}
