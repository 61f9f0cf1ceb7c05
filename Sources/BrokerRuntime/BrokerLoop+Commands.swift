import BrokerAPI
import BrokerCore
import BrokerFeatures

/// Commands of the admin plane. The shard answers them; the loop adds figures that only it knows.
extension BrokerLoop {
    mutating func perform(_ command: BrokerCommand) {
        switch command {
        case .status(let reply): reply(.success(status))
        case .figures(let reply): reply(.success(figures))
        case .clients(let query, let reply): shard.listClients(query, reply: reply)
        case .subscriptions(let query, let reply):
            reply(.success(shard.subscriptionPage(query)))
        case .topicReceivers(let topic, let qos, let limit, let reply):
            shard.listReceivers(of: topic, qos: qos, limit: limit, reply: reply)
        case .retainedList(let query, let reply): shard.listRetained(query, reply: reply)
        case .retained(let topic, let reply):
            reply(.success(shard.retainedMessage(of: topic)))
        case .removeRetained(let topic, let reply): shard.removeRetained(topic, reply: reply)
        case .client(let clientID, let reply):
            reply(.success(shard.client(clientID) { reactor.address(of: $0) }))
        case .history(let clientID, let reply):
            reply(.success(history(of: clientID)))
        case .troubles(let kind, let limit, let reply):
            reply(.success(troubles(kind, limit: limit)))
        case .beginTrace(let request, let reply): reply(.success(beginTrace(request)))
        case .traceLines(let id, let reply): reply(.success(traceLines(id)))
        case .endTrace(let id): endTrace(id)
        case .disconnect(let clientID, let reply): reply(.success(shard.disconnect(clientID)))
        case .endSession(let clientID, let reply): shard.endSession(of: clientID, reply: reply)
        case .disconnectUser(let name, let reply): shard.disconnect(user: name, reply: reply)
        case .setBans(let table, let reply): shard.setBans(table, reply: reply)
        case .lockouts(let reply): reply(.success(currentLockouts))
        case .clearLockouts(let network, let reply):
            reply(.success(lockouts.clear(network, at: shard.now)))
        case .startDrain(let rate, let reference, let reply):
            reply(startDrain(perSecond: rate, serverReference: reference))
        case .drainStatus(let reply): reply(.success(shard.drainStatus))
        case .endDrain(let reply): reply(endDrain())
        case .queue(let query, let reply): shard.queue(query, reply: reply)
        case .dropQueue(let clientID, let bound, let reply):
            shard.dropQueue(of: clientID, below: bound, reply: reply)
        case .publish(let publication, let reply): shard.publish(publication, reply: reply)
        case .publishGroup(let publications, let reply):
            shard.publishGroup(publications, reply: reply)
        case .receiptEvents(let number, let most, let reply):
            shard.receiptEvents(after: number, most: most, reply: reply)
        case .receiptEventsTaken(let number): shard.takeReceiptEvents(through: number)
        case .nextWakes(let kind, let demand): shard.nextWakes(kind, demand)
        case .wakeAnswers(let answers): shard.answerWakes(answers)
        case .question(let asked): shard.answer(asked)
        }
    }

    private var status: BrokerStatus {
        mutating get {
            var status = BrokerStatus(
                figures, durabilityIntervalMs: identity.durabilityIntervalMs,
                listeners: reactor.listenerAddresses)
            if shard.isDraining { status.drain = shard.drainStatus }
            return status
        }
    }

    private var figures: BrokerFigures {
        mutating get {
            shard.outside.bytesReceived = reactor.bytesReceived
            shard.outside.bytesSent = reactor.bytesSent
            shard.outside.authenticationsWaiting = authenticator?.waitingCount ?? 0
            var figures = shard.figures
            addTLS(to: &figures)
            for (number, address) in reactor.listenerAddresses.enumerated() {
                figures.listeners[number].address = address
            }
            figures.turns = turns.histogram
            figures.longestTurnMicroseconds = turns.longestMicroseconds(at: shard.now)
            figures.lockouts = lockouts.count(at: shard.now)
            figures.lockoutsBegun = lockouts.begun
            figures.memory = memoryFigures
            figures.memoryPressure = Int(memory.pressure.rawValue)
            return figures
        }
    }
}
