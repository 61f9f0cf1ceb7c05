import BrokerAPI
import MQTTCodec
import Structures

/// Room for what outlives a packet: the limits of names, and of the bytes that sessions keep.
///
/// Whatever a client has already is kept, and whatever ends with its connection and is small is
/// always granted, so that a broker whose sessions have taken all the room still serves newcomers.
extension Shard {
    /// Bytes of subscriptions that a clean session always gets; there are only as many clean
    /// sessions as connections.
    private static var grantedSubscriptionBytes: Int { 4 * 1_024 }
    /// Bytes of a will that a connection may always have.
    private static var grantedWillBytes: Int { 1_024 }

    /// True while memory is short and nothing can be freed: nothing is added that outlives its
    /// connection.
    public var keepsNothingNew: Bool {
        get { context.keepsNothingNew }
        set { context.keepsNothingNew = newValue }
    }

    /// The answer to a CONNECT with a name that is too long; `nil` if its names may be kept. A
    /// client that has a session already keeps it, whatever the limits were then.
    package func refusalOfNames(
        _ judged: JudgedConnect
    ) -> (code: Connack.ReturnCode, reason: CloseReason)? {
        let identifier = judged.clientID
        let userName = judged.provenUser?.name ?? judged.userName
        let refusal: (Connack.ReturnCode, CloseReason)
        if identifier.count > context.limits.maxClientIDBytes {
            // [MQTT-3.1.3-9]
            refusal = (.identifierRejected, .clientIDTooLong)
        } else if let userName, userName.count > context.limits.maxUserNameBytes {
            refusal = (.badUserNameOrPassword, .userNameTooLong)
        } else {
            return nil
        }
        return sessions.find(identifier) == nil ? refusal : nil
    }

    /// The limit that a CONNECT exceeds. `isNew` is false for a client with a stored session, whose
    /// reconnection adds nothing but its will.
    package func limitExceeded(
        by judged: JudgedConnect, _ identifier: UnsafeRawBufferPointer, _ user: SessionUser?,
        isNew: Bool
    ) -> Limit? {
        let connect = judged.connect
        var added = 0
        if isNew, judged.isPersistent {
            guard sessions.persistentCount < context.limits.maxSessions else { return .maxSessions }
            added = SessionBytes.of(identifier: identifier, user: user)
            added += SessionBytes.of(logins.allowance(of: judged.handle))
        }
        if let will = connect.will {
            let bytes = Int(will.topic.range.count) + Int(will.message.count)
            if bytes > Self.grantedWillBytes { added += SessionBytes.rounded(bytes) }
        }
        return added == 0 ? nil : limitExceeded(adding: added, sessions.key(of: user))
    }

    /// The limit that a session exceeds by a subscription that it has just got; `before` is the
    /// size of its subscriptions until then.
    package func limitExceeded(bySubscriptionsOf session: UInt32, before: Int) -> Limit? {
        let subscriptions = sessions[session].subscriptions
        if subscriptions.weight > context.limits.maxSubscriptions { return .maxSubscriptions }
        let bytes = subscriptions.byteCount
        if bytes > context.limits.mostSubscriptionBytes { return .subscriptionBytes }
        if !sessions[session].isPersistent, bytes <= Self.grantedSubscriptionBytes { return nil }
        return limitExceeded(adding: bytes - before, sessions.userKey(of: session))
    }

    /// The bytes that a session counts, its will included.
    package func sessionBytes(of session: UInt32) -> Int {
        let record = sessions[session]
        var bytes = SessionBytes.of(record) + record.subscriptions.byteCount
        bytes += SessionBytes.of(rights.allowance(of: record))
        if let connection = record.connection {
            if let will = connections[connection].will { bytes += SessionBytes.of(will: will) }
        } else if record.isPersistent {
            bytes += SessionBytes.of(record.inbound)
        }
        return bytes
    }

    private func limitExceeded(adding added: Int, _ user: UInt32) -> Limit? {
        if context.keepsNothingNew { return .memory }
        return sessions.bytes.exceeded(adding: added, user: user, context.limits)
    }
}
