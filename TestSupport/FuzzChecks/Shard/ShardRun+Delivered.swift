import HermesTesting
import MQTTCodec

/// Checks of PUBLISH packets to receivers.
extension ShardRun {
    func receive(
        _ peer: Peer, _ session: SessionModel, _ publish: PacketContent.Publish
    ) throws(CheckFailure) {
        let serial = try identify(publish, for: session)
        try checkWanted(session, publish, serial)
        switch publish.delivery {
        case .atMostOnce: break
        case .atLeastOnce(let identifier, let isDuplicate):
            try track(peer, session, publish, serial, identifier, isDuplicate)
            peer.answers.append(.puback(identifier))
        case .exactlyOnce(let identifier, let isDuplicate):
            try track(peer, session, publish, serial, identifier, isDuplicate)
            peer.answers.append(.pubrec(identifier))
            let isNew = session.held.insert(identifier).inserted
            guard isNew, !publish.retain, let serial, !session.isSharing(publish.topic) else {
                break
            }
            try CheckFailure.unless(
                session.handedOn.insert(serial).inserted,
                "the QoS 2 message \(serial) was handed on twice [MQTT-4.3.3-1]")
        }
        guard let serial else { return }
        session.seen.insert(serial)
        session.owed.remove(serial)
        guard !publish.delivery.isDuplicate, !publish.retain else { return }
        try checkOnce(session, publish, serial)
    }

    /// The publication of which the packet is a copy; `nil` when its payload has no serial number.
    private func identify(
        _ publish: PacketContent.Publish, for session: SessionModel
    ) throws(CheckFailure) -> Int? {
        guard let serial = NumberedMessage.serial(publish.payload), serial < publications.count,
            !publications[serial].isForged
        else { return nil }
        let publication = publications[serial]
        try CheckFailure.unless(publication.isSent, "the message \(serial) was never sent whole")
        try CheckFailure.unless(
            publication.topic == publish.topic,
            "the message \(serial) changed its topic to \(text(publish.topic))")
        try CheckFailure.unless(
            publish.delivery.qos <= publication.qos,
            "the message \(serial) came at \(publish.delivery.qos) [MQTT-3.8.4-6]")
        try CheckFailure.unless(
            !publish.retain || publication.retain,
            "the message \(serial) came as retained [MQTT-3.3.1-9]")
        if publish.retain, let served = session.retainedServedAt {
            try CheckFailure.unless(
                publication.step <= served,
                "the message \(serial) came as retained to an old subscription [MQTT-3.3.1-9]")
        }
        publications[serial].wasDelivered = true
        if let forbidden = publication.forbidden {
            throw CheckFailure("the message \(serial) was delivered, but \(forbidden)")
        }
        // No receiver gets a message that a crash could lose. A copy loaded from the store or
        // retained waits for a later commit, which implies the earlier ones.
        try CheckFailure.unless(
            publication.qos == .atMostOnce || store.isStored(serial: serial)
                || !setup.completesInOrder && (session.isPersistent || publish.retain),
            "the message \(serial) was delivered before its commit")
        return serial
    }

    private func checkWanted(
        _ session: SessionModel, _ publish: PacketContent.Publish, _ serial: Int?
    ) throws(CheckFailure) {
        let since = serial.map { publications[$0].step } ?? 0
        let isWanted = session.mayWant(publish.topic, since: publish.retain ? 0 : since)
        try CheckFailure.unless(
            isWanted,
            "\(text(session.clientID)) asked for nothing that matches "
                + "\(text(publish.topic)) [MQTT-4.7.0-1]")
    }

    /// Notes a packet identifier, new or re-delivered.
    private func track(
        _ peer: Peer, _ session: SessionModel, _ publish: PacketContent.Publish, _ serial: Int?,
        _ identifier: PacketIdentifier, _ isDuplicate: Bool
    ) throws(CheckFailure) {
        let former = session.sendings[identifier]
        if isDuplicate {
            try CheckFailure.unless(
                peer.isRedelivering, "DUP on a packet that is no re-delivery [MQTT-3.3.1-1]")
            try CheckFailure.unless(
                peer.resentPublishes.insert(identifier).inserted,
                "\(identifier) was delivered again twice")
            if let former, former.isSure {
                try CheckFailure.unless(
                    former.publish.topic == publish.topic
                        && former.publish.payload == publish.payload
                        && former.publish.delivery.qos == publish.delivery.qos
                        && former.publish.retain == publish.retain,
                    "\(identifier) came again as another message [MQTT-4.4.0-1]")
                try CheckFailure.unless(
                    !former.isReleased || former.publish.delivery.qos != .exactlyOnce,
                    "PUBLISH \(identifier) came again after PUBREL [MQTT-4.3.3-1]")
            }
        } else {
            try checkResumed(peer, session)
            try CheckFailure.unless(
                former?.isSure != true, "\(identifier) is in flight already [MQTT-2.3.1-4]")
        }
        session.sendings[identifier] = SessionModel.Sending(
            serial: serial, publish: publish,
            isSure: !peer.acknowledged.contains(identifier))
        // Messages that may have been sent are re-delivered at once, perhaps beyond the window.
        guard !isDuplicate else { return }
        let inFlight = session.sendings.values.count { $0.isSure }
        try CheckFailure.unless(
            inFlight <= Int(setup.settings.maxInFlight),
            "\(inFlight) messages in flight of \(setup.settings.maxInFlight)")
    }

    /// All unacknowledged messages are re-delivered before the first new one [MQTT-4.4.0-1].
    private func checkResumed(_ peer: Peer, _ session: SessionModel) throws(CheckFailure) {
        guard peer.isRedelivering else { return }
        peer.isRedelivering = false
        guard !session.isSloppy else { return }
        for (identifier, sending) in session.sendings where sending.isSure {
            let isResumed =
                peer.resentPublishes.contains(identifier)
                || peer.resentReleases.contains(identifier)
            try CheckFailure.unless(
                isResumed, "a new message came before \(identifier) was resumed [MQTT-4.4.0-1]")
        }
    }

    /// A live message arrives as a new packet once, in the order of publisher and topic.
    private func checkOnce(
        _ session: SessionModel, _ publish: PacketContent.Publish, _ serial: Int
    ) throws(CheckFailure) {
        // A group may hand a message to another member and back.
        guard !session.isSharing(publish.topic) else { return }
        try CheckFailure.unless(
            session.arrived.insert(serial).inserted, "the message \(serial) came twice")
        let publication = publications[serial]
        // The highest QoS of overlapping subscriptions counts [MQTT-3.3.5-1].
        let asked = session.sureQoS(publish.topic, since: publication.step) ?? .atMostOnce
        try CheckFailure.unless(
            publish.delivery.qos >= min(publication.qos, asked),
            "the message \(serial) came at \(publish.delivery.qos), not at \(asked)")
        let stream = SessionModel.Stream(
            origin: publication.origin, topic: publication.topic,
            isStored: publication.qos != .atMostOnce)
        try CheckFailure.unless(
            session.lastSerial[stream, default: -1] < serial,
            "the message \(serial) came behind \(session.lastSerial[stream, default: -1]) "
                + "[MQTT-4.6.0-6]")
        session.lastSerial[stream] = serial
    }

    /// The broker acknowledged a message: every certain subscriber must get it.
    func own(_ serial: Int) {
        let publication = publications[serial]
        guard publication.qos != .atMostOnce, !publication.mayBeRepetition,
            publication.forbidden == nil
        else { return }
        for session in sessions.values {
            guard !session.mayBeGone, session.isPersistent || session.holder != nil,
                session.sureQoS(publication.topic, since: publication.step) ?? .atMostOnce
                    != .atMostOnce,
                !session.seen.contains(serial)
            else { continue }
            session.owed.insert(serial)
        }
    }
}
