/// The names that take the places of `%u` and `%c` for one client, each looked at when a rule first asks
/// for it.
struct PlaceholderNames {
    private enum Name {
        case unknown
        case known(UnsafeRawBufferPointer?)
    }

    /// `nil` when no rule with a placeholder will ask.
    private let subject: AccessSubject?
    private var userName = Name.unknown
    private var clientID = Name.unknown

    init(_ subject: AccessSubject?) { self.subject = subject }

    /// The name for a placeholder; `nil` when there is none or it is not usable. `steps` grows by one
    /// for each 16 bytes of a name that is looked at.
    mutating func name(
        for placeholder: UInt8, _ steps: inout Int
    ) -> UnsafeRawBufferPointer? {
        let isUser = placeholder == TopicPattern.userPlaceholder
        if case .known(let name) = isUser ? userName : clientID { return name }
        let name = subject.flatMap { TopicPattern.name(for: placeholder, $0) }
        steps += (name?.count ?? 0) >> 4
        if isUser { userName = .known(name) } else { clientID = .known(name) }
        return name
    }
}
