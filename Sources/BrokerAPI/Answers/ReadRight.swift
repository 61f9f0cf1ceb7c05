/// Whether a client may get messages of a topic now, and who says so.
public struct ReadRight: Sendable, Equatable {
    public enum Source: Sendable, Equatable {
        /// Neither access rules nor a login restrict the client.
        case nothing
        /// The line of the deciding access rule; 0 when none fits, which denies.
        case rule(line: UInt32)
        /// The topics that its login allows: a token's claims or the answer of a login service.
        case login
    }

    public var isAllowed: Bool
    public var source: Source

    public init(isAllowed: Bool, source: Source) {
        self.isAllowed = isAllowed
        self.source = source
    }
}
