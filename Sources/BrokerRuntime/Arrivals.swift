/// What has arrived for a broker's loop and is not handled yet.
struct Arrivals {
    /// Events of the last wait, and those of them that are handled.
    private var eventCount = 0
    private var handledEvents = 0
    /// Messages taken from the mailbox, and those of them that are handled.
    private var mail: [ShardMessage] = []
    private var handledMail = 0
    /// Newcomers may have events.
    var haveNewcomers = false
    /// The mailbox may have messages.
    var hasUntakenMail = false

    var areEventsHandled: Bool { handledEvents == eventCount }
    /// True when messages were taken that are not handled.
    var hasMail: Bool { !mail.isEmpty }

    /// Called when ``areEventsHandled``, with the number of events of a wait.
    mutating func setEvents(_ count: Int) {
        eventCount = count
        handledEvents = 0
    }

    /// The index of the next event; `nil` when all are handled.
    mutating func nextEvent() -> Int? {
        guard handledEvents < eventCount else { return nil }
        defer { handledEvents += 1 }
        return handledEvents
    }

    /// Called unless ``hasMail``, with all messages of the mailbox.
    mutating func setMail(_ messages: [ShardMessage]) {
        mail = messages
        handledMail = 0
        hasUntakenMail = false
    }

    /// The next message; `nil` when all are handled.
    mutating func nextMail() -> ShardMessage? {
        guard hasMail else { return nil }
        let message = mail[handledMail]
        handledMail += 1
        if handledMail == mail.count { mail = [] }
        return message
    }

    /// Takes all messages that are not handled.
    mutating func takeMail() -> [ShardMessage] {
        var messages: [ShardMessage] = []
        while let message = nextMail() { messages.append(message) }
        return messages
    }
}
