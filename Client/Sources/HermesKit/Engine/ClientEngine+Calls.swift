import HermesClientCore
import HermesClientMessages
import MQTTCodec

/// The calls of the client's user, on the event loop.
extension ClientEngine {
    func start() {
        recoverStorage()
        handle { $0.start(at: $1) }
    }

    func stop() {
        takeAcknowledgements()
        cancelCredentials()
        handle { $0.stop(at: $1) }
        setPause(.stopped(.requested))
        outlets.tell(.stopped(.requested))
        outlets.states.end()
        outlets.events.end()
        outlets.inlet.mailbox.end()
        outlets.observers.end()
    }

    func enteredBackground() {
        // What the app has acknowledged before belongs to this connection, and into the report.
        takeAcknowledgements()
        handle { machine, moment in
            publishReport(of: &machine, at: moment)
            machine.enteredBackground(at: moment)
        }
    }

    /// Returns the outcome that ``ClientAction/published(_:)`` finishes, or `nil` for QoS 0.
    func publish(_ message: HermesClient.Message) throws -> Outcome<Void>? {
        let topic = Array(message.topic.utf8)
        if message.qos == .atMostOnce {
            if pendingBytes + message.payload.count > Self.mostPendingBytes {
                throw HermesClientError.outboxFull
            }
        } else {
            try needStorage()
        }
        let key: UInt64?
        do {
            key = try handle { machine, moment throws(PublishError) in
                try machine.publish(
                    topic: topic, payload: message.payload, qos: message.qos.coreQoS,
                    retain: message.retain, sendsNow: false, at: moment)
            }
        } catch {
            throw HermesClientError(error, topic: message.topic)
        }
        guard let key else { return nil }
        // What throws is not kept: the broker has not heard of it.
        if let storageFailure, machine.withdraw(key) {
            throw HermesClientError.storage(storageFailure.reason)
        }
        let outcome = Outcome<Void>()
        outcome.pause(pause)
        receipts[key] = outcome
        handle { $0.sendPending(at: $1) }
        return outcome
    }

    func subscribe(
        _ filter: String, _ qos: HermesClient.QoS, countsLosses: Bool
    ) throws -> Outcome<SubscriptionAnswer> {
        try needStorage()
        let name = Array(filter.utf8)
        let former = machine.stored.subscriptions[name]
        let outcome = awaitAnswer(for: name)
        do {
            try handle { machine, moment throws(SubscriptionError) in
                try machine.subscribe(
                    name, qos: qos.coreQoS, countsLosses: countsLosses, sendsNow: false, at: moment)
            }
        } catch {
            forget(outcome, for: name)
            throw HermesClientError(error, filter: filter)
        }
        try finish(outcome, for: name, former)
        return outcome
    }

    func unsubscribe(_ filter: String) throws -> Outcome<SubscriptionAnswer> {
        try needStorage()
        let name = Array(filter.utf8)
        let former = machine.stored.subscriptions[name]
        let outcome = awaitAnswer(for: name)
        handle { $0.unsubscribe(name, sendsNow: false, at: $1) }
        try finish(outcome, for: name, former)
        return outcome
    }

    /// Sends what a call has stored, or undoes it if it could not be stored.
    private func finish(
        _ outcome: Outcome<SubscriptionAnswer>, for name: [UInt8], _ former: Subscription?
    ) throws {
        if let storageFailure {
            machine.restore(name, former)
            forget(outcome, for: name)
            throw HermesClientError.storage(storageFailure.reason)
        }
        handle { $0.sendPending(at: $1) }
        if let pause {
            outcome.finish(.failure(pause))
            forget(outcome, for: name)
        }
    }

    /// Throws while nothing can be stored.
    private func needStorage() throws {
        recoverStorage()
        if let storageFailure { throw HermesClientError.storage(storageFailure.reason) }
    }

    private func awaitAnswer(for name: [UInt8]) -> Outcome<SubscriptionAnswer> {
        let outcome = Outcome<SubscriptionAnswer>()
        answers[name, default: []].removeAll(where: \.isAbandoned)
        answers[name, default: []].append(outcome)
        return outcome
    }

    private func forget(_ outcome: Outcome<SubscriptionAnswer>, for name: [UInt8]) {
        answers[name]?.removeAll { $0 === outcome }
        if answers[name]?.isEmpty == true { answers[name] = nil }
    }

    /// False if there is no message with this key.
    func discard(_ key: UInt64) -> Bool {
        let isKnown = handle { $0.discard(key, at: $1) }
        receipts.removeValue(forKey: key)?.finish(.failure(HermesClientError.discarded))
        return isKnown
    }

    // MARK: Messages

    func fillInlet() {
        outlets.inlet.fill { [inlet = outlets.inlet] in
            guard let inbound = machine.takeMessage() else { return nil }
            let message = HermesClient.ReceivedMessage(inbound)
            cache.insert(message)
            outlets.observers.put(message)
            return HermesClient.Delivery(message, number: inbound.number, inlet: inlet)
        }
    }

    func takeAcknowledgements() {
        let numbers = outlets.inlet.takeAcknowledged()
        handle { machine, moment in
            for number in numbers { machine.acknowledge(number, at: moment) }
        }
    }

    // MARK: Report

    var statistics: HermesClient.Statistics {
        HermesClient.Statistics(
            machine.counters, heartbeatSeconds: machine.heartbeatSeconds,
            unacknowledgedPublishes: machine.stored.outbox.count)
    }

    /// Publishes the counters; there is nothing to tell before the first connection.
    func publishReport(of machine: inout ClientMachine, at moment: Moment) {
        guard let reportTopic, machine.counters.connects > 0 else { return }
        let report = ReportEncoder.encode(
            machine.counters, losses: machine.lossesByChannel,
            heartbeatSeconds: machine.heartbeatSeconds, network: machine.networkLabel)
        machine.sendReport(report, topic: reportTopic, at: moment)
    }
}
