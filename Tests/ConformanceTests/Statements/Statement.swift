/// A numbered normative statement of MQTT 3.1.1 or 5.0 (their appendix B), as this project lists it.
///
/// The texts are our own short summaries; the specification defines the rule. That of 3.1.1 prints two
/// identifiers irregularly: `MQTT-3.1.2.7` is 3.1.2-7 here, `MQTT-3-8.3-4` is 3.8.3-4. That of 5.0
/// prints 4.2-1 as 4.2.0-1.
struct Statement: Sendable {
    /// The party that a statement binds.
    enum Party: Sendable {
        case server, client, both
    }

    /// Such as `MQTT-3.1.0-1`, or `MQTT5-3.1.0-1` for 5.0.
    let identifier: String
    let binds: Party
    let gist: String

    init(_ number: String, _ binds: Party, _ gist: String) {
        identifier = "MQTT-\(number)"
        self.binds = binds
        self.gist = gist
    }

    init(five number: String, _ binds: Party, _ gist: String) {
        identifier = "MQTT5-\(number)"
        self.binds = binds
        self.gist = gist
    }

    var bindsServer: Bool { binds != .client }

    static let all: [Statement] = dataRepresentation + connecting + packets + behaviour
    static let version5: [Statement] =
        dataRepresentation5 + connecting5 + packets5 + behaviour5
}

/// A statement without a test, and the reason.
struct UntestedStatement: Sendable {
    /// The accepted reasons; each fits certain statements only.
    enum Excuse: String, Sendable {
        /// A broker cannot observe whether a client complies.
        case bindsClients = "binds clients only"
        /// hermesd accepts connections and makes none.
        case makesNoConnections = "no bridge"
        /// A rule for servers that offer less than hermesd does.
        case offersAll = "nothing is limited"
        /// A rule for what hermesd does not offer.
        case notOffered = "not offered"
        /// hermesd shows it only with settings that the broker of these tests does not have.
        case needsSettings = "process tests"
    }

    let identifier: String
    let excuse: Excuse
    let reason: String

    init(_ number: String, _ excuse: Excuse, _ reason: String) {
        identifier = "MQTT-\(number)"
        self.excuse = excuse
        self.reason = reason
    }

    init(five number: String, _ excuse: Excuse, _ reason: String) {
        identifier = "MQTT5-\(number)"
        self.excuse = excuse
        self.reason = reason
    }

    static let all: [UntestedStatement] = [
        UntestedStatement(
            "2.3.1-2", .bindsClients,
            "a client that reuses an identifier in use harms itself; ours is 2.3.1-4"),
        UntestedStatement(
            "2.3.1-3", .bindsClients, "how a client sends again; what the broker does is 4.4.0-1"),
        UntestedStatement(
            "3.1.2-23", .bindsClients, "when a client sends PINGREQ; the broker's part is 3.1.2-24"),
        UntestedStatement(
            "3.14.4-1", .bindsClients, "a client closes after DISCONNECT; the broker does not wait"),
        UntestedStatement(
            "4.5.0-2", .bindsClients, "a client acknowledges whatever its application does"),
        UntestedStatement(
            "7.0.0-1", .makesNoConnections,
            "a program that is server and client at once; hermesd is a server, all else here shows"),
        UntestedStatement("7.1.2-1", .bindsClients, "a client's transport"),
    ]
}
