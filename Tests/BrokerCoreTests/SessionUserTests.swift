import BrokerTesting
import HermesTesting
import MQTTCodec
import Structures
import Testing

@testable import BrokerCore
@testable import BrokerFeatures
@testable import Store

@Suite("Users that certificates prove, beside names that nothing proves")
struct SessionUserTests {
    /// A broker without password file; a certificate proves a user, and a CONNECT claims one.
    private func link(_ text: String) throws -> ShardLink {
        ShardLink(access: try rules(text), verifiesPasswords: false)
    }

    /// Connects to the session of client identifier "c"; returns the handle and CONNACK.
    private func connect(
        _ link: ShardLink, certificate: String? = nil, claim: String? = nil
    ) throws -> (handle: Handle, answer: PacketContent?) {
        let handle = link.open()
        if let certificate { link.shard.identify(handle, Array(certificate.utf8)) }
        var connect = PacketContent.Connect(clientID: "c")
        connect.cleanSession = false
        connect.userName = claim.map { Array($0.utf8) }
        try link.send(handle, .connect(connect))
        return (handle, try link.take(handle).first)
    }

    private let rulesOfAnna = "allow user anna both #\nallow anonymous both open"

    @Test("a certificate gives its user's rights, and a claimed name gives none")
    func rights() throws {
        let link = try link(rulesOfAnna)
        let (anna, _) = try connect(link, certificate: "anna", claim: "mallory")
        try link.send(anna, .subscribe("secret", .atMostOnce))
        #expect(try link.take(anna) == [.suback(1, [0])])
        link.lose(anna)

        let other = try self.link(rulesOfAnna)
        let (mallory, _) = try connect(other, claim: "anna")
        try other.send(mallory, .subscribe("secret", .atMostOnce), .subscribe("open", .atMostOnce))
        #expect(try other.take(mallory) == [.suback(1, [0x80]), .suback(1, [0])])
    }

    @Test("an unproven user name gives no access to that user's session", arguments: [true, false])
    func theft(isConnected: Bool) throws {
        let link = try link(rulesOfAnna)
        let (anna, _) = try connect(link, certificate: "anna")
        if !isConnected { link.lose(anna) }
        for claim in ["anna", "mallory", nil] {
            let (_, answer) = try connect(link, claim: claim)
            #expect(answer == .connack(.refused(.notAuthorized)), "\(claim ?? "none")")
        }
        let (_, answer) = try connect(link, certificate: "berta", claim: "anna")
        #expect(answer == .connack(.refused(.notAuthorized)))
        #expect(!isConnected || !link.closed.contains(anna))
        #expect(
            try connect(link, certificate: "anna").answer
                == .connack(.accepted(sessionPresent: true)))
    }

    @Test("a session created under an unproven name is not given to that user")
    func planted() throws {
        let link = try link(rulesOfAnna)
        let (mallory, _) = try connect(link, claim: "anna")
        try link.send(mallory, .subscribe("open", .atLeastOnce))
        let (anna, answer) = try connect(link, certificate: "anna")
        #expect(answer == .connack(.accepted(sessionPresent: false)))
        #expect(link.closed.contains(mallory))
        try link.send(anna, .publish("open", "x"))
        #expect(try link.take(anna).isEmpty)
        #expect(
            try connect(link, certificate: "anna").answer
                == .connack(.accepted(sessionPresent: true)))
    }

    @Test(
        "records distinguish proven from claimed names, with and without a password file",
        arguments: ["anna", "", "\u{FF}", "ÿ"])
    func records(name: String) {
        let bytes = Array(name.utf8)
        for proof in [SessionUser.Proof.none, .password, .certificate] {
            let record = bytes.withUnsafeBytes { SessionUser(name: $0, proof: proof).stored }
            // The next start may have a password file or not.
            for later in [true, false] {
                record.withUnsafeBytes { stored in
                    let user = SessionUser(stored: stored, verifiesPasswords: later)
                    #expect(user.name.elementsEqual(bytes))
                    let expected: SessionUser.Proof =
                        proof == .certificate ? .certificate : later ? .password : .none
                    #expect(user.proof == expected)
                }
            }
        }
    }

    @Test("a user proven by certificate stays proven without the password file")
    func passwordFileRemoved() throws {
        let before = ShardLink(access: try rules(rulesOfAnna), verifiesPasswords: true)
        _ = try connect(before, certificate: "anna")
        let stored = before.store.records.compactMap { record in
            if case .session(_, _, let userName) = record { userName } else { nil }
        }
        #expect(stored.count == 1)
        let link = try link(rulesOfAnna)
        for userName in stored {
            userName.withUnsafeBytes { userName in
                Array("c".utf8).withUnsafeBytes { identifier in
                    _ = link.shard.visit(
                        StoredSession(
                            number: 1, clientID: identifier, userName: userName,
                            isAttached: false, detachedSinceMs: link.shard.wallClockMs,
                            horizon: 0, end: 0, waitingMessages: 0, waitingBytes: 0,
                            holdsShared: false, hasEnded: false))
                }
            }
        }
        link.shard.finishRestoring()
        #expect(
            try connect(link, claim: "anna").answer == .connack(.refused(.notAuthorized)))
        #expect(
            try connect(link, certificate: "anna").answer
                == .connack(.accepted(sessionPresent: true)))
    }

    @Test(
        "no client publishes to $SYS or $CONTROL, whatever the rules say", arguments: [true, false])
    func closedTopics(hasRules: Bool) throws {
        let rules =
            try hasRules ? rules("allow everyone both $SYS/#\nallow everyone both $CONTROL/#") : nil
        let link = ShardLink(access: rules, verifiesPasswords: false)
        let (watcher, _) = try connect(link, claim: nil)
        try link.send(watcher, .subscribe("$CONTROL/#", .atMostOnce))
        _ = try link.take(watcher)
        for topic in ["$SYS", "$SYS/x", "$CONTROL", "$CONTROL/dynsec/v1"] {
            try link.send(watcher, .publish(topic, "x", qos: .atLeastOnce, 1))
            #expect(try link.take(watcher) == [.puback(1)])
        }
        let will = link.open()
        var connect = PacketContent.Connect(clientID: "w")
        connect.will = PacketContent.Will(topic: "$CONTROL/x", message: [1])
        try link.send(will, .connect(connect))
        link.lose(will)
        #expect(try link.take(watcher).isEmpty)
        #expect(link.shard.counters.dropped[.reservedTopic] == 5)
    }
}
