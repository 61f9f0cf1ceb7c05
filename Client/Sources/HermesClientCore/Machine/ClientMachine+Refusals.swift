import MQTTCodec

/// Publications that the broker refuses by closing the connection, and the client's report.
extension ClientMachine {
    /// An accepted connection has ended. True if a publication may be the cause.
    mutating func noteEnd(_ reason: DropReason, at moment: Moment) -> Bool {
        guard let link else { return false }
        let inFlight = publicationsInFlight
        guard !inFlight.isEmpty else {
            refusals.endedWithout()
            return false
        }
        let age = moment.monotonicMilliseconds - link.publishedAt
        guard reason.isEndByPeer, age <= RefusalWatch.promptMilliseconds else { return false }
        refusals.ended(upon: inFlight, isOrderly: reason == .closedByPeer)
        return true
    }

    /// What was sent on this connection and not acknowledged.
    private var publicationsInFlight: [RefusalWatch.Publication] {
        guard let link else { return [] }
        var inFlight = stored.outbox.messages.prefix(link.sent).filter { !$0.isReleased }
            .map { RefusalWatch.Publication.message($0.key) }
        if case .sent = link.report { inFlight.append(.report) }
        return inFlight
    }

    /// A suspect goes when all else is acknowledged, and nothing else goes while it is in flight.
    func maySend(_ publication: RefusalWatch.Publication) -> Bool {
        guard refusals.hasSuspects, let link else { return true }
        let inFlight = publicationsInFlight
        guard refusals.isSuspect(publication) else {
            return !inFlight.contains { refusals.isSuspect($0) }
        }
        return inFlight.isEmpty && link.sent == 0 && link.gate == nil
    }

    /// The broker refuses a publication: it is held back, and with it all that have its topic, which
    /// would overtake it or be refused as well.
    mutating func holdBack(_ refused: RefusalWatch.Publication, at moment: Moment) {
        switch refused {
        case .report:
            isReportDue = false
            record(.reportRefused(at: moment.unixMilliseconds))
            reportHoldMilliseconds = refusals.holdReport()
            if let reportTopic { perform(.event(.publishRefused(topic: reportTopic))) }
        case .message(let key):
            guard let topic = stored.outbox[key]?.topic else { return }
            for message in stored.outbox.unreleased(withTopic: topic) {
                refusals.settled(.message(message.key))
                record(.heldBack(message.key))
            }
            if refusals.hold(topic, at: moment.monotonicMilliseconds) {
                perform(.event(.publishRefused(topic: topic)))
            }
        }
    }

    /// The broker has taken a message over: it does not refuse its topic, or no longer.
    mutating func brokerTook(_ message: OutgoingMessage) {
        refusals.settled(.message(message.key))
        refusals.release(message.topic)
        for other in stored.outbox.held(withTopic: message.topic) { record(.retried(other.key)) }
    }

    // MARK: The outbox

    /// Sends a message that is held back again; false if there is none with this key.
    package mutating func retry(_ key: UInt64, at moment: Moment) -> Bool {
        guard let message = stored.outbox.held.first(where: { $0.key == key }) else {
            return false
        }
        retryHeld(message, at: moment.monotonicMilliseconds)
        return true
    }

    /// The message with this key is not sent any more; false if there is none.
    ///
    /// One of QoS 2 that may have reached the broker keeps its identifier until PUBCOMP, or the
    /// broker would take the next message with that identifier for a repeat.
    package mutating func discard(_ key: UInt64, at moment: Moment) -> Bool {
        guard let message = stored.outbox[key] else { return false }
        let now = moment.monotonicMilliseconds
        refusals.settled(.message(key))
        defer { forgetHold(of: message.topic, at: now) }
        if message.qos == .exactlyOnce, attempted.contains(key) {
            if message.isReleased { return true }
            if stored.outbox.held.contains(message) { record(.retried(key)) }
            record(.released(key))
            let isSent = stored.outbox.messages.prefix(link?.sent ?? 0).contains { $0.key == key }
            if isSent { send(.pubrel, message.identifier, at: now) }
        } else {
            let isSent = stored.outbox.messages.prefix(link?.sent ?? 0).contains { $0.key == key }
            record(.discarded(key))
            attempted.remove(key)
            if isSent {
                link?.sent -= 1
                link?.discarded.insert(message.identifier)
            }
        }
        sendOutgoing(at: now)
        return true
    }

    /// Tries the oldest message of a topic again whose time has come.
    mutating func retryHeld(at now: Int64) {
        let held = stored.outbox.held
        guard let due = held.first(where: { (refusals.nextRetry(of: [$0]) ?? .max) <= now })
        else { return }
        retryHeld(due, at: now)
    }

    private mutating func retryHeld(_ message: OutgoingMessage, at now: Int64) {
        refusals.suspect(.message(message.key))
        refusals.tries(message.topic)
        record(.retried(message.key))
        if case .connected = phase, link?.gate == nil { closeGate(at: now) }
        sendOutgoing(at: now)
    }

    /// The app has discarded a message; others of its topic may still be held back.
    private mutating func forgetHold(of topic: [UInt8], at now: Int64) {
        if stored.outbox.held(withTopic: topic).isEmpty {
            // While another one of them is tried, what becomes of it counts.
            if stored.outbox.unreleased(withTopic: topic).isEmpty { refusals.release(topic) }
        } else {
            refusals.triedInVain(topic, at: now)
        }
    }

    // MARK: What comes first

    mutating func closeGate(at now: Int64) {
        link?.gate = Gate(until: now + Gate.mostMilliseconds)
        askAtGate(at: now)
    }

    /// Asks for a sign that the broker has sent all that it had, once nothing is to be acknowledged.
    mutating func askAtGate(at now: Int64) {
        guard let gate = link?.gate, !gate.hasAsked, inbox.arrivalCount == 0 else { return }
        link?.gate?.hasAsked = true
        link?.gate?.hasArrival = false
        sendPing(at: now)
    }

    /// PINGRESP has come: all that the broker had sent before has come too.
    mutating func gateAnswered(at now: Int64) {
        guard let gate = link?.gate, gate.hasAsked else { return }
        if !gate.hasArrival, inbox.arrivalCount == 0 {
            link?.gate = nil
            sendOutgoing(at: now)
        } else {
            link?.gate?.hasAsked = false
            askAtGate(at: now)
        }
    }

    // MARK: The report

    /// Sends the client's report with QoS 1. It is not stored and never in the outbox: its figures
    /// are totals, and a later one replaces it. Does nothing without a connection, and while the
    /// broker refuses reports.
    package mutating func sendReport(_ payload: [UInt8], topic: [UInt8], at moment: Moment) {
        guard case .connected = phase else { return }
        if case .sent? = link?.report { return }
        guard !isReportRefused(at: moment) else {
            // It is due again in an hour.
            isReportDue = false
            link?.report = .none
            return
        }
        let now = moment.monotonicMilliseconds
        reportTopic = topic
        isReportDue = true
        if stored.reportRefusedAt != nil, !refusals.isSuspect(.report) { refusals.suspect(.report) }
        guard maySend(.report) else {
            // What is under way comes first, and asks for the report again.
            link?.report = .none
            return
        }
        let identifier = freeIdentifier()
        link?.report = .sent(identifier)
        link?.publishedAt = now
        send(
            Self.encodePublish(
                topic, payload, .atLeastOnce, false, identifier, isDuplicate: false), at: now)
    }

    private func isReportRefused(at moment: Moment) -> Bool {
        guard let refusedAt = stored.reportRefusedAt else { return false }
        let age = moment.unixMilliseconds - refusedAt
        return 0..<reportHoldMilliseconds ~= age
    }

    /// Has the driver make the report that is due, after everything else.
    mutating func askForReport() {
        guard isReportDue, let link, link.report == .none, maySend(.report) else { return }
        self.link?.report = .asked
        perform(.reportDue)
    }
}
