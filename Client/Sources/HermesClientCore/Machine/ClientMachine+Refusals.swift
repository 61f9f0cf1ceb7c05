import MQTTCodec

/// Publications that the broker refuses by closing the connection, and the client's report.
extension ClientMachine {
    /// A report that was refused is tried again after a day.
    static let reportRefusalMilliseconds: Int64 = 24 * 3_600_000

    /// The broker has ended the connection. True if a publication may be the cause.
    mutating func noteClose(at moment: Moment) -> Bool {
        let now = moment.monotonicMilliseconds
        guard let link, now - link.publishedAt <= RefusalWatch.promptMilliseconds else {
            return false
        }
        var inFlight = stored.outbox.messages.prefix(link.sent).filter { !$0.isReleased }
            .map { RefusalWatch.Publication.message($0.key) }
        if case .sent = link.report { inFlight.append(.report) }
        switch refusals.closed(upon: inFlight) {
        case nil: break
        case .report?:
            isReportDue = false
            record(.reportRefused(at: moment.unixMilliseconds))
            if let reportTopic { perform(.event(.publishRefused(topic: reportTopic))) }
        case .message(let key)?:
            guard let message = stored.outbox[key] else { break }
            record(.heldBack(key))
            if refusals.hold(key, at: now) {
                perform(.event(.publishRefused(topic: message.topic)))
            }
        }
        return !inFlight.isEmpty
    }

    // MARK: The outbox

    /// Sends a message that is held back again; false if there is none with this key.
    package mutating func retry(_ key: UInt64, at moment: Moment) -> Bool {
        guard stored.outbox.held.contains(where: { $0.key == key }) else { return false }
        retryHeld(key, at: moment.monotonicMilliseconds)
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

    /// Tries one message again whose time has come, when nothing else is under way.
    mutating func retryHeld(at now: Int64) {
        let held = stored.outbox.held
        guard stored.outbox.messages.isEmpty,
            let due = held.first(where: { (refusals.nextRetry(of: [$0]) ?? .max) <= now })
        else { return }
        retryHeld(due.key, at: now)
    }

    private mutating func retryHeld(_ key: UInt64, at now: Int64) {
        refusals.suspect(.message(key))
        record(.retried(key))
        sendOutgoing(at: now)
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
        guard case .connected = phase, !isReportRefused(at: moment) else { return }
        if case .sent? = link?.report { return }
        let now = moment.monotonicMilliseconds
        reportTopic = topic
        isReportDue = true
        if stored.reportRefusedAt != nil { refusals.suspect(.report) }
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
        return 0..<Self.reportRefusalMilliseconds ~= age
    }

    /// Has the driver make the report that is due, after everything else.
    mutating func askForReport() {
        guard isReportDue, let link, link.report == .none, link.gate == nil,
            !refusals.hasSuspects || link.sent == 0
        else { return }
        self.link?.report = .asked
        perform(.reportDue)
    }
}
