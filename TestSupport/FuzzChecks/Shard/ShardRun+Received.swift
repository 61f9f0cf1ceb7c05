import HermesTesting
import MQTTCodec

/// Compares received packets with those allowed.
extension ShardRun {
    func receive(_ peer: Peer, _ bytes: [UInt8]) throws(CheckFailure) {
        let (packets, error) = Peer.takePackets(&peer.arriving, bytes) { _ in .max }
        for packet in packets {
            trace?("    \(peer.handle.index) receives \(packet.short)")
            store.update()
            try receive(peer, packet)
        }
        if let error {
            throw CheckFailure("\(peer.handle) received a malformed packet: \(error)")
        }
    }

    private func receive(_ peer: Peer, _ packet: PacketContent) throws(CheckFailure) {
        switch peer.stage {
        case .awaitingConnack:
            guard case .connack(let connack) = packet else {
                throw CheckFailure("\(packet.short) came before CONNACK [MQTT-3.2.0-1]")
            }
            try receive(peer, connack)
        case .refused:
            throw CheckFailure("\(packet.short) came after a refusal [MQTT-3.2.2-5]")
        case .accepted:
            guard let session = peer.session else {
                preconditionFailure("\(peer.handle) was accepted without a session")
            }
            try receive(peer, session, packet)
        }
    }

    private func receive(
        _ peer: Peer, _ session: SessionModel, _ packet: PacketContent
    ) throws(CheckFailure) {
        switch packet {
        case .publish(let publish): try receive(peer, session, publish)
        case .puback(let identifier):
            let answered = peer.pubacks.isEmpty ? nil : peer.pubacks.removeFirst()
            try receive(peer, packet, identifier, answered)
        case .pubrec(let identifier):
            let answered = peer.pubrecs.isEmpty ? nil : peer.pubrecs.removeFirst()
            try receive(peer, packet, identifier, answered)
            if answered?.isReleased == false { session.inboundHeld.insert(identifier) }
        case .pubrel(let identifier): try receiveRelease(peer, session, identifier)
        case .pubcomp(let identifier):
            let expected = peer.pubcomps.isEmpty ? nil : peer.pubcomps.removeFirst()
            try CheckFailure.unless(
                expected == identifier, "PUBCOMP \(identifier) instead of \(text(expected))")
            guard !peer.pubcomps.contains(identifier) else { return }
            try CheckFailure.unless(
                !session.isPersistent
                    || store.isInboundEndStored(session.clientID, identifier),
                "PUBCOMP \(identifier) left before its commit")
            if !peer.pubrecs.contains(where: { $0.identifier == identifier }) {
                session.inboundPossible.remove(identifier)
            }
        case .suback(let identifier, let codes):
            try receive(peer, session, suback: identifier, codes)
        case .unsuback(let identifier):
            let answered = peer.unsubscribes.isEmpty ? nil : peer.unsubscribes.removeFirst()
            guard let answered, answered.identifier == identifier else {
                throw CheckFailure(
                    "UNSUBACK \(identifier) instead of \(text(answered?.identifier))")
            }
            for filter in answered.filters {
                session.uses[filter]?.changesUnderWay -= 1
                if session.uses[filter]?.changesUnderWay == 0 { session.uses[filter]?.end = step }
            }
        case .pingresp:
            peer.pings -= 1
            try CheckFailure.unless(peer.pings >= 0, "PINGRESP without PINGREQ")
        case .connack:
            throw CheckFailure("a second CONNACK")
        case .connect, .subscribe, .unsubscribe, .pingreq, .disconnect:
            throw CheckFailure("\(packet.short), which only clients send")
        }
    }

    // MARK: CONNACK

    private func receive(_ peer: Peer, _ connack: Connack) throws(CheckFailure) {
        guard let connect = peer.connect else {
            // Only an unsupported level is answered without parsing the rest [MQTT-3.1.2-2].
            try CheckFailure.unless(
                peer.isViolating && connack == .refused(.unacceptableProtocolVersion),
                "\(connack) without a CONNECT")
            peer.stage = .refused
            return
        }
        guard connack.returnCode == .accepted else {
            try CheckFailure.unless(
                !connack.sessionPresent, "a refusal with session present [MQTT-3.2.2-4]")
            peer.stage = .refused
            return
        }
        let session = try session(of: peer, connect, isPresent: connack.sessionPresent)
        peer.stage = .accepted
        peer.session = session
        session.holder = peer.handle
        session.awaySince = nil
        try CheckFailure.unless(
            !session.isPersistent || store.isSessionStored(session.clientID),
            "CONNACK left before its session was stored")
        for packet in peer.early { note(packet, for: session) }
        peer.early = []
    }

    private func session(
        of peer: Peer, _ connect: PacketContent.Connect, isPresent: Bool
    ) throws(CheckFailure) -> SessionModel {
        let identifier = connect.clientID
        let former = sessions[identifier]
        let fresh = SessionModel(connect)
        guard !identifier.isEmpty else {
            try CheckFailure.unless(!isPresent, "a made-up identifier with a session present")
            return fresh
        }
        sessions[identifier] = fresh
        guard isPresent else {
            let isLost =
                !connect.cleanSession && former?.isPersistent == true && former?.mayBeGone == false
                && !mayHaveExpired(former)
            try CheckFailure.unless(
                !isLost, "the session of \(text(identifier)) is gone [MQTT-3.1.2-4]")
            return fresh
        }
        try CheckFailure.unless(
            !connect.cleanSession, "a clean session that was present [MQTT-3.2.2-1]")
        try CheckFailure.unless(
            everPersistent.contains(identifier),
            "a session present that was never made [MQTT-3.2.2-3]")
        peer.isRedelivering = true
        if let former, former.isPersistent, !former.mayBeGone {
            sessions[identifier] = former
            return former
        }
        // The client does not know this session: a connection that ended before CONNACK used it, or
        // a refused CONNECT left it.
        fresh.isSloppy = true
        fresh.received = everReceived[identifier] ?? []
        for filter in filters { fresh.uses[filter] = SessionModel.Use() }
        return fresh
    }

    /// True when a session was offline for about its expiry time.
    func mayHaveExpired(_ session: SessionModel?) -> Bool {
        guard let away = session?.awaySince else { return false }
        let expiry = setup.settings.sessionExpiry.components.seconds * 1_000
        return harness.now.milliseconds(since: away) >= UInt64(expiry) - 1_000
    }

    // MARK: Acknowledgements

    /// PUBACK or PUBREC: in the order of the PUBLISH packets [MQTT-4.6.0-2] [MQTT-4.6.0-3], and
    /// only after the message is stored.
    private func receive(
        _ peer: Peer, _ packet: PacketContent, _ identifier: PacketIdentifier,
        _ answered: Peer.Unanswered?
    ) throws(CheckFailure) {
        guard let answered, answered.identifier == identifier else {
            throw CheckFailure("\(packet.short) instead of one for \(text(answered?.identifier))")
        }
        guard let serial = answered.serial, !publications[serial].isForged else { return }
        try CheckFailure.unless(
            store.isStored(serial: serial), "\(packet.short) left before its commit")
        own(serial)
    }

    /// PUBREL: the answer to a PUBREC, or a re-delivery after reconnect.
    private func receiveRelease(
        _ peer: Peer, _ session: SessionModel, _ identifier: PacketIdentifier
    ) throws(CheckFailure) {
        let isResent =
            peer.isRedelivering && session.received.contains(identifier)
            && !peer.resentPublishes.contains(identifier)
            && !peer.resentReleases.contains(identifier)
        if isResent {
            peer.resentReleases.insert(identifier)
        } else {
            // An earlier one, taken for a re-delivery, may have been the answer.
            while let first = peer.pubrels.first, first != identifier,
                peer.resentReleases.contains(first)
            {
                peer.pubrels.removeFirst()
            }
            let expected = peer.pubrels.isEmpty ? nil : peer.pubrels.removeFirst()
            try CheckFailure.unless(
                expected == identifier, "PUBREL \(identifier) instead of \(text(expected))")
        }
        try CheckFailure.unless(
            !session.isPersistent || store.isReleaseStored(session.clientID, identifier),
            "PUBREL \(identifier) left before its commit")
        session.held.remove(identifier)
        if session.sendings[identifier]?.publish.delivery.qos == .exactlyOnce {
            session.sendings[identifier]?.isReleased = true
        }
        peer.answers.append(.pubcomp(identifier))
    }

    private func receive(
        _ peer: Peer, _ session: SessionModel, suback identifier: PacketIdentifier,
        _ codes: [UInt8]
    ) throws(CheckFailure) {
        let answered = peer.subscribes.isEmpty ? nil : peer.subscribes.removeFirst()
        guard let answered, answered.identifier == identifier else {
            throw CheckFailure("SUBACK \(identifier) instead of \(text(answered?.identifier))")
        }
        // One code per filter, in order [MQTT-3.9.3-1].
        try CheckFailure.unless(
            codes.count == answered.requests.count,
            "SUBACK with \(codes.count) codes for \(answered.requests.count) filters")
        for (request, code) in zip(answered.requests, codes) {
            try CheckFailure.unless(
                code == 0x80 || code <= request.qos.rawValue,
                "SUBACK grants \(code) for \(text(request.filter)) at \(request.qos)")
            guard var use = session.uses[request.filter] else { continue }
            use.changesUnderWay -= 1
            if use.changesUnderWay == 0 {
                use.qos = QoS(rawValue: code) ?? .atMostOnce
                use.confirmedAt = code == 0x80 ? nil : step
                try CheckFailure.unless(
                    !session.isPersistent || code == 0x80
                        || store.isSubscriptionStored(session.clientID, request.filter),
                    "SUBACK for \(text(request.filter)) left before its commit")
            }
            session.uses[request.filter] = use
        }
    }

    private func text(_ identifier: PacketIdentifier?) -> String {
        identifier.map { "\($0)" } ?? "none"
    }

    private func text(_ bytes: [UInt8]) -> String { FuzzChecks.text(bytes) }
}
