import MQTTCodec

extension ClientMachine {
    /// The next message for the app, in the order of arrival; `nil` if there is none.
    package mutating func takeMessage() -> InboundMessage? { inbox.take() }

    /// The app is done with a message. The broker learns it when all earlier messages are
    /// acknowledged too. A second call for one message does nothing.
    ///
    /// Once the records are stored, the message never comes to the app again if it was of QoS 2 or
    /// had a sequence; before that, a kill of the program brings it back.
    package mutating func acknowledge(_ number: UInt64, at moment: Moment) {
        guard let message = inbox.acknowledge(number) else { return }
        if let facts = message.facts { remember(facts) }
        record(.counted(received: 1, duplicates: 0))
        if message.qos == .exactlyOnce, let identifier = message.identifier {
            record(.received(identifier, digest: message.digest))
        }
        answerArrivals(at: moment.monotonicMilliseconds)
    }

    mutating func receive(_ publish: Publish, in bytes: [UInt8], at moment: Moment) {
        link?.gate?.hasArrival = true
        link?.messageAt = moment.monotonicMilliseconds
        let topic = Array(bytes[publish.topic.range.start..<publish.topic.range.end])
        let payload = Array(bytes[publish.payload.start..<publish.payload.end])
        switch publish.delivery {
        case .atMostOnce:
            receiveAtMostOnce(topic, payload, retain: publish.retain, at: moment)
        case .atLeastOnce(let identifier, let isDuplicate),
            .exactlyOnce(let identifier, let isDuplicate):
            let digest = ContentDigest.of(topic: topic, payload: payload)
            let qos = publish.delivery.qos
            // Some brokers send again by a timer; the answer follows as it would have anyway.
            if let arrival = inbox.arrival(identifier) {
                if !isDuplicate || arrival.digest != digest {
                    drop(.violation(.identifierInUse(identifier)), at: moment)
                }
                return
            }
            guard inbox.arrivalCount < settings.limits.unacknowledgedMessages else {
                drop(.violation(.tooManyUnacknowledged), at: moment)
                return
            }
            let arrival = Inbox.Arrival(
                identifier: identifier, qos: qos, digest: digest, awaits: nil)
            if isDuplicate || link?.isUncertain == false {
                if joinRedelivery(arrival, at: moment.monotonicMilliseconds) { return }
            }
            receive(arrival, topic, payload, retain: publish.retain, at: moment)
        }
    }

    private mutating func receiveAtMostOnce(
        _ topic: [UInt8], _ payload: [UInt8], retain: Bool, at moment: Moment
    ) {
        uncounted.received += 1
        let facts = readFacts(topic, payload)
        if let facts {
            guard !wasSeen(facts), inbox.copied(facts.identity) == nil else {
                uncounted.duplicates += 1
                return
            }
            noteArrival(facts, at: moment.monotonicMilliseconds)
            // Nobody acknowledges it: it counts as seen when it comes.
            remember(facts)
        }
        _ = inbox.deliver(
            topic: topic, payload: payload, retain: retain, facts: facts, as: nil,
            at: moment.monotonicMilliseconds)
        let dropped = inbox.dropAtMostOnce(beyond: settings.limits)
        if dropped > 0 {
            uncounted.droppedAtMostOnce += UInt64(dropped)
            perform(.event(.droppedAtMostOnce(count: dropped)))
        }
    }

    /// Answers a PUBLISH of QoS 1 or 2 that the app has had under this identifier; false if the
    /// message is another one.
    private mutating func joinRedelivery(_ arrival: Inbox.Arrival, at now: Int64) -> Bool {
        if arrival.qos == .exactlyOnce, stored.received[arrival.identifier] == arrival.digest {
            answer(arrival, at: now)
            return true
        }
        let redelivered = inbox.takeOrphan(
            arrival.identifier, qos: arrival.qos, digest: arrival.digest)
        guard let redelivered else { return false }
        var arrival = arrival
        arrival.awaits = redelivered
        answer(arrival, at: now)
        return true
    }

    /// A PUBLISH of QoS 1 or 2 that is no redelivery: a copy of what came before, or a new message.
    private mutating func receive(
        _ arrival: Inbox.Arrival, _ topic: [UInt8], _ payload: [UInt8], retain: Bool,
        at moment: Moment
    ) {
        var arrival = arrival
        if arrival.qos == .exactlyOnce, stored.received[arrival.identifier] != nil {
            // The broker has given up the old message and uses its identifier again.
            record(.receivedReleased(arrival.identifier))
        }
        let facts = readFacts(topic, payload)
        if let facts {
            arrival.awaits = inbox.copied(facts.identity)
            if arrival.awaits != nil || wasSeen(facts) {
                record(.counted(received: 1, duplicates: 1))
                answer(arrival, at: moment.monotonicMilliseconds)
                return
            }
        }
        guard inbox.unacknowledgedCount < settings.limits.unacknowledgedMessages,
            inbox.bytes + topic.count + payload.count <= settings.limits.inboundBytes
        else {
            drop(.violation(.tooManyUnacknowledged), at: moment)
            return
        }
        if let facts { noteArrival(facts, at: moment.monotonicMilliseconds) }
        arrival.awaits = inbox.deliver(
            topic: topic, payload: payload, retain: retain, facts: facts,
            as: (arrival.identifier, arrival.qos, arrival.digest),
            at: moment.monotonicMilliseconds)
        inbox.append(arrival)
    }

    private mutating func answer(_ arrival: Inbox.Arrival, at now: Int64) {
        inbox.append(arrival)
        answerArrivals(at: now)
    }

    /// Sends PUBACK and PUBREC for what the app has acknowledged, in the order of arrival.
    private mutating func answerArrivals(at now: Int64) {
        while let arrival = inbox.takeAnswerable() {
            link?.messageAt = now
            if arrival.qos == .exactlyOnce {
                if stored.received[arrival.identifier] != arrival.digest {
                    record(.received(arrival.identifier, digest: arrival.digest))
                }
                send(.pubrec, arrival.identifier, at: now)
            } else {
                send(.puback, arrival.identifier, at: now)
            }
        }
        askAtGate(at: now)
    }

    // MARK: Duplicates and losses

    private mutating func readFacts(_ topic: [UInt8], _ payload: [UInt8]) -> MessageFacts? {
        guard let facts = settings.readFacts(topic, payload), facts.isBounded else { return nil }
        // A part of a channel has no order of its own: its messages have names only.
        if case .sequenced(let numbers) = facts,
            !stored.subscriptions.countsLosses(ofTopic: topic)
        {
            return .named(Self.name(of: numbers))
        }
        if case .sequenced(let numbers) = facts { noteTopic(topic, of: numbers.channel) }
        return facts
    }

    private static func name(of numbers: SequenceNumbers) -> [UInt8] {
        var name = RecordWriter()
        name.append(ContentDigest.of(topic: numbers.channel, payload: []))
        name.append(numbers.sequence)
        name.append(numbers.publishedAtMilliseconds)
        return name.bytes
    }

    private mutating func noteTopic(_ topic: [UInt8], of channel: [UInt8]) {
        if channelTopics[channel] == topic { return }
        if channelTopics.count >= ChannelTable.mostChannels { channelTopics = [:] }
        channelTopics[channel] = topic
    }

    /// A subscription has ended or is asked for anew: messages were missed meanwhile that were
    /// never to come. A channel of which no topic is known in this life of the program may be one of
    /// its channels.
    mutating func forgetBaselines(of filter: [UInt8]) {
        for (channel, _) in stored.channels.windows {
            if let topic = channelTopics[channel], !TopicMatch.covers(filter, topic) { continue }
            losses.forget(channel)
            record(.baselineForgotten(channel))
        }
    }

    private func wasSeen(_ facts: MessageFacts) -> Bool {
        switch facts {
        case .sequenced(let numbers):
            stored.channels[numbers.channel]?.hasSeen(numbers) ?? false
        case .named(let name): stored.recentNames.contains(name)
        }
    }

    private mutating func remember(_ facts: MessageFacts) {
        switch facts {
        case .sequenced(let numbers): record(.sequence(numbers))
        case .named(let name): record(.messageName(name))
        }
    }

    private mutating func noteArrival(_ facts: MessageFacts, at now: Int64) {
        guard case .sequenced(let numbers) = facts else { return }
        losses.arrived(numbers, window: stored.channels[numbers.channel], at: now)
    }

    /// The sequences that were told to the app as lost, by channel; those with none are left out.
    package var lossesByChannel: [(channel: [UInt8], count: UInt64)] {
        stored.channels.windows.compactMap { channel, window in
            window.losses == 0 ? nil : (channel, window.losses)
        }
    }

    mutating func tellLosses(at now: Int64) {
        for (channel, lost) in losses.takeLosses(at: now) {
            guard let last = lost.last?.upperBound else { continue }
            let count = lost.reduce(UInt64(0)) { $0 &+ ($1.upperBound - $1.lowerBound) &+ 1 }
            // A kill in between tells it twice, and not never.
            perform(.event(.loss(channel: channel, lost)))
            record(.lossTold(channel, upTo: last, count: count))
        }
    }
}
