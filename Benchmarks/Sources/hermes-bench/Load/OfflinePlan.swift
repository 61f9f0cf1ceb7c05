import MQTTCodec

/// Messages for sessions of offline clients: their number and their publishers.
///
/// Each session has a topic of its own, and one publisher sends everything to that topic, so the
/// messages of a session have an order. Publisher `p` of `P` serves the sessions `p`, `p + P`,
/// `p + 2P` and so on, one message each in turn, so that a queue's messages lie far apart in time.
struct OfflinePlan {
    /// Sessions that get messages.
    var sessions: Int
    /// Further sessions, with a subscription and no message.
    var idleSessions: Int
    var messagesPerSession: UInt64
    /// At most as many as there are sessions.
    var publishers: Int
    /// Messages of a publisher that are not acknowledged to it.
    var window: Int
    var qos: QoS
    var payloadBytes: Int
    /// Clients that are connected at a time when they come back.
    var returningAtOnce: Int

    var messages: UInt64 { UInt64(sessions) * messagesPerSession }

    /// Sessions that a publisher serves.
    func sessions(of publisher: Int) -> Int {
        (sessions - publisher + publishers - 1) / publishers
    }

    /// Messages that a publisher sends in all.
    func messages(of publisher: Int) -> UInt64 {
        UInt64(sessions(of: publisher)) * messagesPerSession
    }

    /// The session that gets a publisher's message at `position`, which counts from 0.
    func destination(
        publisher: Int, position: UInt64
    ) -> (session: Int, sequence: UInt64) {
        let served = UInt64(sessions(of: publisher))
        let session = publisher + publishers * Int(position % served)
        return (session, position / served)
    }
}
