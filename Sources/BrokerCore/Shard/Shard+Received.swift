import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// A receiver's acknowledgements and its PINGREQ, of any version.
extension Shard {
    mutating func receivePing(_ handle: Handle) {
        connections[handle].notePing(at: context.now)
        // [MQTT-3.12.4-1]
        connections[handle].outlet.appendPingresp(pool: pool)
        context.counters.otherPacketsSent += 1
        connections.markDirty(handle)
        limitOutput(handle)
    }

    /// Handles PUBACK and PUBCOMP, the receiver's last acknowledgements.
    mutating func receiveFinal(
        _ handle: Handle, _ type: PacketType, _ identifier: PacketIdentifier
    ) {
        let session = connections[handle].session
        let received =
            type == .puback
            ? sessions[session].outbound.acknowledge(identifier, pool: pool)
            : sessions[session].outbound.complete(identifier, pool: pool)
        if case .violation(let awaited) = received {
            end(handle, .protocolViolation(.wrongAcknowledgement(type, awaited: awaited)))
        }
        guard case .accepted(let position, let arrivedMs) = received else {
            if type == .pubcomp,
                let position = sessions[session].outbound.storedPosition(of: identifier)
            {
                sessions.loads.noteCompleted(position, of: sessions[session].number)
            }
            return
        }
        sessions.totals.finished()
        acknowledged(
            session, position, type == .puback ? .atLeastOnce : .exactlyOnce, arrivedMs: arrivedMs)
        pump(session)
        resumeRetained(session)
    }

    mutating func receivePubrec(_ handle: Handle, _ identifier: PacketIdentifier) {
        let session = connections[handle].session
        var needsCommit = false
        var isKnown = true
        switch sessions[session].outbound.markReceived(identifier, pool: pool) {
        case .accepted(let position, _):
            if sessions[session].isPersistent {
                commits.records.released(
                    session: sessions[session].number, position: position)
                needsCommit = true
            }
            // From now on the receiver owns the message, and the broker has deleted it.
            positionEnded(session, position, .acknowledged)
        case .violation(let awaited):
            end(handle, .protocolViolation(.wrongAcknowledgement(.pubrec, awaited: awaited)))
            return
        case .repeated: break
        case .unknown:
            // PUBREL answers an unknown identifier too, so that the receiver can end the exchange.
            isKnown = sessions[session].outbound.storedPosition(of: identifier) != nil
            needsCommit = releaseStored(session, identifier)
        }
        acknowledge(
            handle, .pubrel, identifier, isKnown ? .success : .packetIdentifierNotFound,
            needsCommit: needsCommit, requestBytes: 0)
    }

    /// Records PUBREC for a message in flight that only the store has, so that it is never sent
    /// again once PUBREL has left [MQTT-4.3.3-1]; false when there can be none with this identifier,
    /// or when its PUBREC has come before.
    @inline(never)
    private mutating func releaseStored(_ session: UInt32, _ identifier: PacketIdentifier) -> Bool {
        let number = sessions[session].number
        guard let position = sessions[session].outbound.storedPosition(of: identifier),
            sessions.loads.noteReleased(position, of: number)
        else { return false }
        commits.records.released(session: number, position: position)
        return true
    }

    /// Handles a PUBACK or PUBREC of MQTT 5.0 that refuses a message. The message is done, and comes no
    /// more [MQTT-4.4.0-2]; nobody else of a shared subscription's group gets it [MQTT-4.8.2-6], and no
    /// PUBREL follows [MQTT-4.3.3-4].
    mutating func receiveRefusal(
        _ handle: Handle, _ type: PacketType, _ identifier: PacketIdentifier, _ code: ReasonCode
    ) {
        let session = connections[handle].session
        switch sessions[session].outbound.refuse(identifier, by: type, pool: pool) {
        case .violation(let awaited):
            end(handle, .protocolViolation(.wrongAcknowledgement(type, awaited: awaited)))
        case .accepted(let position, _):
            sessions.totals.finished()
            finished(session, position, .dropped(.refused))
            drop(session, .refused)
            pump(session)
            resumeRetained(session)
        case .repeated, .unknown: return
        }
    }
}
