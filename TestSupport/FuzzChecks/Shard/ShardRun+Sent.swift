import HermesTesting
import MQTTCodec

/// Notes packets in the model before the shard reads them.
extension ShardRun {
    func noteSent(_ peer: Peer, _ bytes: [UInt8]) {
        guard !peer.isViolating, !peer.hasDisconnected else { return }
        let settings = setup.settings
        let (packets, error) = Peer.takePackets(&peer.sending, bytes) { packet in
            if case .connect = packet {
                settings.maxConnectPacketBytes
            } else {
                settings.maxPacketBytes
            }
        }
        for packet in packets {
            trace?("    \(peer.handle.index) sends \(packet.short)")
            noteSent(peer, packet)
            guard !peer.isViolating, !peer.hasDisconnected else { return }
        }
        if error != nil { peer.isViolating = true }
    }

    private func noteSent(_ peer: Peer, _ packet: PacketContent) {
        switch packet {
        case .connect(let connect): noteSent(peer, connect)
        case .connack, .suback, .unsuback, .pingresp: peer.isViolating = true
        default:
            guard peer.connect != nil else {
                // The first packet must be a CONNECT [MQTT-3.1.0-1].
                peer.isViolating = true
                return
            }
            noteActive(peer, packet)
        }
    }

    private func noteSent(_ peer: Peer, _ connect: PacketContent.Connect) {
        guard peer.connect == nil else {
            // One connection carries one CONNECT [MQTT-3.1.0-2].
            peer.isViolating = true
            return
        }
        peer.connect = connect
        if !connect.cleanSession { everPersistent.insert(connect.clientID) }
        // A CONNECT with clean session may end the former session before CONNACK.
        if connect.cleanSession { sessions[connect.clientID]?.mayBeGone = true }
        guard let will = connect.will else { return }
        topics.insert(will.topic)
        peer.will = noteSerial(will.message, .will(peer.handle), will.topic, will.qos, will.retain)
    }

    private func noteActive(_ peer: Peer, _ packet: PacketContent) {
        switch packet {
        case .publish(let publish): noteSent(peer, publish)
        case .puback(let identifier): peer.acknowledged.insert(identifier)
        case .pubrec(let identifier):
            peer.acknowledged.insert(identifier)
            peer.pubrels.append(identifier)
            let client = peer.connect?.clientID ?? []
            everReceived[client, default: []].insert(identifier)
        case .pubrel(let identifier):
            peer.pubcomps.append(identifier)
            for index in peer.pubrecs.indices where peer.pubrecs[index].identifier == identifier {
                peer.pubrecs[index].isReleased = true
            }
        case .pubcomp(let identifier): peer.acknowledged.insert(identifier)
        case .subscribe(let identifier, let requests):
            filters.formUnion(requests.map(\.filter))
            peer.subscribes.append(
                Peer.UnansweredSubscribe(identifier: identifier, requests: requests))
        case .unsubscribe(let identifier, let filters):
            peer.unsubscribes.append((identifier, filters))
        case .pingreq: peer.pings += 1
        case .disconnect: peer.hasDisconnected = true
        case .connect, .connack, .suback, .unsuback, .pingresp: return
        }
        guard let session = peer.session else {
            peer.early.append(packet)
            return
        }
        note(packet, for: session)
    }

    private func noteSent(_ peer: Peer, _ publish: PacketContent.Publish) {
        topics.insert(publish.topic)
        let serial = noteSerial(
            publish.payload, .peer(peer.handle), publish.topic, publish.delivery.qos,
            publish.retain)
        switch publish.delivery {
        case .atMostOnce: return
        case .atLeastOnce(let identifier, _):
            peer.pubacks.append(Peer.Unanswered(identifier: identifier, serial: serial))
        case .exactlyOnce(let identifier, _):
            if let serial {
                if let session = peer.session {
                    if session.inboundHeld.contains(identifier) {
                        publications[serial].forbidden =
                            "it repeats the QoS 2 identifier \(identifier) before PUBREL "
                            + "[MQTT-4.3.3-2]"
                    }
                    publications[serial].mayBeRepetition =
                        session.isSloppy || session.inboundPossible.contains(identifier)
                } else {
                    publications[serial].mayBeRepetition = true
                }
            }
            peer.pubrecs.append(Peer.Unanswered(identifier: identifier, serial: serial))
        }
    }

    /// The publication named by a payload, if it was registered for this topic.
    private func noteSerial(
        _ payload: [UInt8], _ origin: NumberedMessage.Origin, _ topic: [UInt8], _ qos: QoS,
        _ retain: Bool
    ) -> Int? {
        guard let serial = NumberedMessage.serial(payload), serial < publications.count else {
            return nil
        }
        let publication = publications[serial]
        guard !publication.isSent, publication.origin == origin, publication.topic == topic,
            publication.qos == qos, publication.retain == retain
        else {
            publications[serial].isForged = true
            return nil
        }
        publications[serial].isSent = true
        publications[serial].step = step
        if ShardVocabulary.isReserved(topic) {
            publications[serial].forbidden = "only the broker publishes to \(text(topic))"
        }
        return serial
    }

    /// Notes the effect of a packet on its sender's session.
    func note(_ packet: PacketContent, for session: SessionModel) {
        switch packet {
        case .publish(let publish):
            guard case .exactlyOnce(let identifier, _) = publish.delivery else { return }
            session.inboundPossible.insert(identifier)
        case .puback(let identifier): noteEnd(identifier, .atLeastOnce, session)
        case .pubrec(let identifier):
            session.received.insert(identifier)
            if session.sendings[identifier]?.publish.delivery.qos != .exactlyOnce {
                session.isSloppy = true
            }
        case .pubrel(let identifier): session.inboundHeld.remove(identifier)
        case .pubcomp(let identifier):
            // Before PUBREC has arrived, PUBCOMP may end an exchange that the broker has released.
            if session.sendings[identifier]?.isReleased != true { session.isSloppy = true }
            noteEnd(identifier, .exactlyOnce, session)
        case .subscribe(_, let requests):
            session.retainedServedAt = nil
            for request in requests {
                var use = session.uses[request.filter] ?? SessionModel.Use()
                use.end = nil
                use.confirmedAt = nil
                use.changesUnderWay += 1
                session.uses[request.filter] = use
            }
        case .unsubscribe(_, let filters):
            for filter in filters {
                var use = session.uses[filter] ?? SessionModel.Use(end: 0)
                use.confirmedAt = nil
                use.changesUnderWay += 1
                session.uses[filter] = use
            }
        case .connect, .connack, .suback, .unsuback, .pingreq, .pingresp, .disconnect: return
        }
    }

    private func noteEnd(
        _ identifier: PacketIdentifier, _ qos: QoS, _ session: SessionModel
    ) {
        guard session.sendings[identifier]?.publish.delivery.qos == qos else {
            session.isSloppy = true
            return
        }
        session.sendings[identifier]?.isSure = false
    }
}
