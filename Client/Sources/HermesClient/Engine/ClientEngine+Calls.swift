import HermesClientCore
import HermesClientMessages
import MQTTCodec

/// The calls of the client's user, on the event loop.
extension ClientEngine {
    func start() {
        recoverStorage()
        if let storageFailure {
            outlets.states.change(to: .stopped(.storageFailed(storageFailure.reason)))
            return
        }
        handle { $0.start(at: $1) }
    }

    func stop() {
        cancelCredentials()
        handle { $0.stop(at: $1) }
        outlets.states.change(to: .stopped(.requested))
        for outcomes in answers.values {
            for outcome in outcomes { outcome.finish(.failure(HermesClientError.stopped)) }
        }
        answers = [:]
        for receipt in receipts.values { receipt.finish(.failure(HermesClientError.stopped)) }
        receipts = [:]
        outlets.states.end()
        outlets.events.end()
        outlets.inlet.mailbox.end()
    }

    func enteredBackground() {
        handle { machine, moment in
            publishReport(of: &machine, at: moment)
            machine.enteredBackground(at: moment)
        }
    }

    /// Returns the outcome that ``ClientAction/published(_:)`` finishes, or `nil` for QoS 0.
    func publish(_ message: HermesClient.Message) throws -> Outcome<Void>? {
        let topic = Array(message.topic.utf8)
        if message.qos == .atMostOnce, pendingBytes + message.payload.count > Self.mostPendingBytes
        {
            throw HermesClientError.outboxFull
        }
        let key: UInt64?
        do {
            key = try handle { machine, moment throws(PublishError) in
                try machine.publish(
                    topic: topic, payload: message.payload, qos: message.qos.coreQoS,
                    retain: message.retain, at: moment)
            }
        } catch {
            throw HermesClientError(error, topic: message.topic)
        }
        if let storageFailure { throw HermesClientError.storage(storageFailure.reason) }
        guard let key else { return nil }
        let outcome = Outcome<Void>()
        receipts[key] = outcome
        return outcome
    }

    func subscribe(_ filter: String, _ qos: HermesClient.QoS) throws -> Outcome<SubscriptionAnswer>
    {
        let outcome = awaitAnswer(for: filter)
        do {
            try handle { machine, moment throws(SubscriptionError) in
                try machine.subscribe(Array(filter.utf8), qos: qos.coreQoS, at: moment)
            }
        } catch {
            _ = answers[Array(filter.utf8)]?.popLast()
            throw HermesClientError(error, filter: filter)
        }
        if let storageFailure { throw HermesClientError.storage(storageFailure.reason) }
        return outcome
    }

    func unsubscribe(_ filter: String) throws -> Outcome<SubscriptionAnswer> {
        let outcome = awaitAnswer(for: filter)
        handle { $0.unsubscribe(Array(filter.utf8), at: $1) }
        if let storageFailure { throw HermesClientError.storage(storageFailure.reason) }
        return outcome
    }

    private func awaitAnswer(for filter: String) -> Outcome<SubscriptionAnswer> {
        let outcome = Outcome<SubscriptionAnswer>()
        answers[Array(filter.utf8), default: []].removeAll(where: \.isAbandoned)
        answers[Array(filter.utf8), default: []].append(outcome)
        return outcome
    }

    // MARK: Messages

    func fillInlet() {
        outlets.inlet.fill { [inlet = outlets.inlet] in
            guard let inbound = machine.takeMessage() else { return nil }
            let message = HermesClient.ReceivedMessage(inbound)
            cache.insert(message)
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
            unacknowledgedPublishes: machine.stored.outbox.messages.count)
    }

    /// Publishes the counters, unless the former report is still on its way: they are cumulative.
    func publishReport(of machine: inout ClientMachine, at moment: Moment) {
        guard let reportTopic, machine.counters.connects > 0,
            !machine.stored.outbox.messages.contains(where: { $0.topic == reportTopic })
        else { return }
        let report = ReportEncoder.encode(
            machine.counters, losses: machine.lossesByChannel,
            heartbeatSeconds: machine.heartbeatSeconds, network: machine.networkLabel)
        // A full outbox leaves no room for it; the next report holds all of this one.
        _ = try? machine.publish(
            topic: reportTopic, payload: report, qos: .atLeastOnce, at: moment)
    }
}
