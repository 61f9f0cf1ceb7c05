import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Handles the packets of a client of MQTT 5.0, from the one after CONNECT on.
extension Shard {
    /// Handles all complete packets from `start` on, and returns the place of the first byte that is left.
    mutating func receive5(
        _ handle: Handle, _ bytes: UnsafeRawBufferPointer, from start: Int
    ) -> Int {
        var offset = start
        while offset < bytes.count {
            guard !connections[handle].machine.isEnding else { return bytes.count }
            guard !connections[handle].machine.holdsInput, !connections[handle].intake.isPaused
            else { break }
            do throws(PacketFault) {
                switch try PacketDecoder5.frame(
                    bytes.bytes, at: offset, from: .client,
                    maximumSize: context.limits.maxPacketBytes)
                {
                case .incomplete:
                    if commits.holdsMessages { awaitStoreEarly5(handle, bytes, offset) }
                    return offset
                case .frame(let frame):
                    guard context.budget.admits(PacketType(frame.type)) else {
                        connections.awaitTurn(handle)
                        return offset
                    }
                    if commits.holdsMessages, awaitsStore5(handle, frame, bytes) { return offset }
                    if filterRequests.isEmpty || !filterRequests.contains(handle) {
                        context.counters.packetsReceived += 1
                        try process5(handle, frame, bytes)
                    } else {
                        continueFilters(handle, frame.packet, bytes)
                    }
                    context.budget.spend(WorkBudget.packet)
                    if rights.hasWork { chargeRights() }
                    if connections[handle].intake.awaitsTurn { return offset }
                    offset = frame.packet.end
                    // The keep alive counts complete packets, not bytes [MQTT-3.1.2-22].
                    connections[handle].keepAlive.heard(at: context.now)
                }
            } catch {
                // DISCONNECT says which rule it is [MQTT-4.13.1-1].
                end(handle, .protocolViolation(.fault(error)))
                return bytes.count
            }
        }
        return offset
    }

    private mutating func process5(
        _ handle: Handle, _ frame: PacketDecoder5.Frame, _ bytes: UnsafeRawBufferPointer
    ) throws(PacketFault) {
        // A second CONNECT is a violation even if it is malformed [MQTT-3.1.0-2].
        guard frame.type != .connect else {
            end(handle, .protocolViolation(.secondConnect))
            return
        }
        switch try PacketDecoder5.decode(frame, bytes.bytes, from: .client) {
        case .publish(let publish): receivePublish5(handle, publish, frame, bytes)
        case .puback(let answer):
            guard answer.code.isFailure else {
                return receiveFinal(handle, .puback, answer.packetIdentifier)
            }
            receiveRefusal(handle, .puback, answer.packetIdentifier, answer.code)
        case .pubrec(let answer):
            guard answer.code.isFailure else {
                return receivePubrec(handle, answer.packetIdentifier)
            }
            receiveRefusal(handle, .pubrec, answer.packetIdentifier, answer.code)
        case .pubrel(let answer): receivePubrel(handle, answer.packetIdentifier)
        case .pubcomp(let answer): receiveFinal(handle, .pubcomp, answer.packetIdentifier)
        case .subscribe(let subscribe): receiveSubscribe5(handle, subscribe, frame.packet, bytes)
        case .unsubscribe(let unsubscribe):
            receiveUnsubscribe5(handle, unsubscribe, frame.packet, bytes)
        case .pingreq: receivePing(handle)
        case .disconnect(let disconnect): receiveDisconnect5(handle, disconnect, bytes)
        // No method was agreed on, since the broker has none [MQTT-4.12.0-7].
        case .auth: end(handle, .protocolViolation(.authWithoutMethod))
        case .connect, .connack, .suback, .unsuback, .pingresp:
            end(handle, .protocolViolation(.packetOnlyServersSend))
        }
    }

    private mutating func receivePublish5(
        _ handle: Handle, _ publish: Publish5, _ frame: PacketDecoder5.Frame,
        _ bytes: UnsafeRawBufferPointer
    ) {
        let topic: UnsafeRawBufferPointer
        switch publish.topic {
        case .name(let name): topic = bytes[name.range]
        case .named(let name, let alias):
            topic = bytes[name.range]
            switch clients5.set(alias, topic, handle) {
            case .taken: break
            case .aboveMaximum: return end(handle, .protocolViolation(.topicAlias))
            case .tooLong: return end(handle, .aliasBytes)
            }
        case .alias(let alias):
            guard let known = clients5.topic(of: alias, handle) else {
                // One that was never announced is another fault than one that was not set.
                let isAnnounced = alias.rawValue <= TopicAliases.most
                end(
                    handle,
                    .protocolViolation(isAnnounced ? .unknownTopicAlias : .topicAlias))
                return
            }
            topic = known
        }
        receivePublish(
            handle,
            IncomingPublish(
                publish, topic: topic, frame.packet, bytes, wallClockMs: context.wallClockMs))
    }

    /// DISCONNECT 0x00 deletes the will [MQTT-3.14.4-3]; with another code it is published. An expiry of
    /// the session takes the place of CONNECT's, unless that was 0.
    private mutating func receiveDisconnect5(
        _ handle: Handle, _ disconnect: Disconnect5, _ bytes: UnsafeRawBufferPointer
    ) {
        if let seconds = disconnect.properties.sessionExpiryInterval(in: bytes.bytes) {
            guard seconds == 0 || clients5[handle].sessionExpiry > 0 else {
                end(handle, .protocolViolation(.raisedSessionExpiry))
                return
            }
            setExpiry(seconds, of: connections[handle].session)
        }
        end(handle, disconnect.code == .success ? .disconnect : .disconnectWithWill)
    }

    // MARK: The store accepts no messages

    /// As ``awaitsStore(_:_:_:)``.
    private mutating func awaitsStore5(
        _ handle: Handle, _ frame: PacketDecoder5.Frame, _ bytes: UnsafeRawBufferPointer
    ) -> Bool {
        let needs: Bool
        switch frame.type {
        case .publish:
            guard
                case .publish(let publish)? = try? PacketDecoder5.decode(
                    frame, bytes.bytes, from: .client),
                let topic = topic(of: publish, handle, bytes)
            else { return false }
            let qos = publish.delivery.qos
            needs = needsStore(
                topic: topic, qos: qos, retain: publish.retain,
                holdsIdentifier: qos == .exactlyOnce
                    && sessions[connections[handle].session].isPersistent)
        case .subscribe, .unsubscribe:
            needs =
                commits.isBacklogFull && sessions[connections[handle].session].isPersistent
        case .connect, .connack, .puback, .pubrec, .pubrel, .pubcomp, .suback, .unsuback, .pingreq,
            .pingresp, .disconnect, .auth:
            needs = false
        }
        if needs { awaitStore(handle) }
        return needs
    }

    private mutating func awaitStoreEarly5(
        _ handle: Handle, _ bytes: UnsafeRawBufferPointer, _ offset: Int
    ) {
        guard let begun = PacketDecoder5.begunPublish(bytes.bytes, at: offset) else { return }
        _ = awaitsStore5(handle, begun, bytes)
    }

    /// The topic of a PUBLISH; `nil` when its alias stands for none.
    private func topic(
        of publish: Publish5, _ handle: Handle, _ bytes: UnsafeRawBufferPointer
    ) -> UnsafeRawBufferPointer? {
        switch publish.topic {
        case .name(let name), .named(let name, _): bytes[name.range]
        case .alias(let alias): clients5.topic(of: alias, handle)
        }
    }
}

extension PacketType {
    /// The type as ``WorkBudget`` knows it. AUTH costs as little as the packet that it stands for here.
    fileprivate init(_ type: PacketType5) {
        self = PacketType(rawValue: type.rawValue) ?? .pingreq
    }
}
