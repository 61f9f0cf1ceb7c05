import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Acknowledgements to a client, and pauses of a client that waits for too many.
extension Shard {
    /// Bound on a connection's waiting acknowledgements; above the number of identifiers.
    private static var mostAcknowledgements: UInt32 { 3 * 65_536 }

    /// Sends an acknowledgement, after those before it. `requestBytes` is the size of the PUBLISH
    /// or UNSUBSCRIBE; 0 for other packets and repetitions.
    package mutating func acknowledge(
        _ handle: Handle, _ type: PacketType, _ identifier: PacketIdentifier, needsCommit: Bool,
        requestBytes: Int
    ) {
        acknowledge(
            handle, type, identifier, ticket: needsCommit ? commit(.acknowledge(handle)) : 0,
            requestBytes: requestBytes)
    }

    /// The same with a reason, which a client of MQTT 5.0 gets; others have no word for it.
    @inline(__always)
    mutating func acknowledge(
        _ handle: Handle, _ type: PacketType, _ identifier: PacketIdentifier, _ code: ReasonCode,
        needsCommit: Bool, requestBytes: Int
    ) {
        guard code != .success, connections[handle].outlet.speaks5 else {
            acknowledge(
                handle, type, identifier, needsCommit: needsCommit, requestBytes: requestBytes)
            return
        }
        acknowledgeWithReason(
            handle, type, identifier, code, needsCommit: needsCommit, requestBytes: requestBytes)
    }

    @inline(never)
    private mutating func acknowledgeWithReason(
        _ handle: Handle, _ type: PacketType, _ identifier: PacketIdentifier, _ code: ReasonCode,
        needsCommit: Bool, requestBytes: Int
    ) {
        guard let type = PacketType5(rawValue: type.rawValue) else { return }
        let short = PacketEncoder5.short(type, identifier, code)
        let ticket = needsCommit ? commit(.acknowledge(handle)) : 0
        guard ticket != 0 || !connections[handle].intake.acknowledgements.isEmpty else {
            withUnsafeBytes(of: short.word.littleEndian) {
                guard let base = $0.baseAddress else { return }
                connections[handle].outlet.append(packet: base, count: short.count, pool: pool)
            }
            context.counters.otherPacketsSent += 1
            connections.markDirty(handle)
            if requestBytes > 0 { pauseIfNeeded(handle) } else { limitOutput(handle) }
            return
        }
        let packet = SharedBytes(count: short.count, pool: pool)
        for place in 0..<short.count {
            packet.bytes.storeBytes(
                of: UInt8(truncatingIfNeeded: short.word >> (8 * UInt64(place))),
                toByteOffset: place, as: UInt8.self)
        }
        connections[handle].intake.append(
            packet: packet, ticket: ticket, requestBytes: requestBytes, pool: pool)
        pauseIfNeeded(handle)
        // PUBREL is read even during a pause, so its acknowledgements have a bound of their own.
        if connections[handle].intake.acknowledgements.count > Self.mostAcknowledgements {
            end(handle, .outputLimit)
        }
    }

    /// The same, for a group of records that has ended with this ticket; 0 without one.
    package mutating func acknowledge(
        _ handle: Handle, _ type: PacketType, _ identifier: PacketIdentifier, ticket: UInt64,
        requestBytes: Int
    ) {
        let word = PacketEncoder.fourBytes(type, identifier)
        guard ticket != 0 || !connections[handle].intake.acknowledgements.isEmpty else {
            connections[handle].outlet.append(word: word, pool: pool)
            context.counters.otherPacketsSent += 1
            connections.markDirty(handle)
            if requestBytes > 0, type != .unsuback {
                pauseIfNeeded(handle)
            } else {
                limitOutput(handle)
            }
            return
        }
        connections[handle].intake.append(
            word: word, ticket: ticket, requestBytes: requestBytes, pool: pool)
        pauseIfNeeded(handle, isPublisher: type != .unsuback)
        // PUBREL is read even during a pause, so its acknowledgements have a bound of their own.
        if connections[handle].intake.acknowledgements.count > Self.mostAcknowledgements {
            end(handle, .outputLimit)
        }
    }

    /// Sends a whole packet as acknowledgement and takes over its reference.
    package mutating func acknowledge(
        _ handle: Handle, packet: SharedBytes, ticket: UInt64, requestBytes: Int
    ) {
        connections[handle].intake.append(
            packet: packet, ticket: ticket, requestBytes: requestBytes, pool: pool)
        if ticket == 0 { releaseAcknowledgements(handle) }
        if !connections[handle].intake.acknowledgements.isEmpty {
            pauseIfNeeded(handle, isPublisher: false)
        }
    }

    /// Moves acknowledgements whose commits have completed to the output, in order.
    package mutating func releaseAcknowledgements(_ handle: Handle) {
        guard connections.isLive(handle) else { return }
        if context.isRigged { Failpoint.beforeAcknowledge.reach() }
        let released = connections[handle].releaseAcknowledgements(pool: context.pool) { ticket in
            commits.mayAcknowledge(ticket)
        }
        if context.isRigged { Self.reachFailpoints(released.types) }
        context.counters.otherPacketsSent += UInt64(released.count)
        connections.markDirty(handle)
        limitOutput(handle)
        resumeIfPossible(handle)
    }

    private static func reachFailpoints(_ released: AcknowledgementQueue.Types) {
        if released.contains(.pubrec) { Failpoint.pubrec.reach() }
        if released.contains(.pubrel) { Failpoint.pubrel.reach() }
        if released.contains(.pubcomp) { Failpoint.pubcomp.reach() }
    }

    /// Ends the connection of a client that sends without reading.
    package mutating func limitOutput(_ handle: Handle) {
        if connections[handle].outlet.isOverLimit(context) { end(handle, .outputLimit) }
    }

    // MARK: Pausing

    private mutating func pauseIfNeeded(_ handle: Handle, isPublisher: Bool = true) {
        let unsent = connections[handle].outlet.count
        guard
            let limit = connections[handle].intake.pauseIfNeeded(
                context, outputBytes: unsent, isPublisher: isPublisher)
        else { return }
        context.counters.publishersPaused += 1
        context.counters.limits.add(limit)
        notePause(handle, true)
    }

    @inline(__always)
    package mutating func resumeIfPossible(_ handle: Handle) {
        if connections[handle].intake.isPaused { resumePaused(handle) }
    }

    private mutating func resumePaused(_ handle: Handle) {
        let unsent = connections[handle].outlet.count
        guard connections[handle].intake.resumeIfPossible(context, outputBytes: unsent) else {
            return
        }
        context.counters.publishersPaused -= 1
        connections.resume(handle, now: context.now)
        notePause(handle, false)
    }

    private mutating func notePause(_ handle: Handle, _ isPaused: Bool) {
        let session = connections[handle].session
        guard reportsWaiting, session != noIndex else { return }
        context.notices.append(
            .paused(handle, clientID: sessions.identifier(of: session), isPaused))
    }
}
