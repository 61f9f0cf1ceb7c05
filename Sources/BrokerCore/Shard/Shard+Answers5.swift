import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// CONNACK and DISCONNECT for clients of MQTT 5.0.
extension Shard {
    /// Appends the CONNACK that accepts a client. Properties say what differs from the standard's
    /// defaults and from what the client asked for (section 3.2.2.3). False when it is larger than the
    /// client takes [MQTT-3.1.2-24].
    mutating func accept5(_ handle: Handle, sessionPresent: Bool) -> Bool {
        let client = clients5[handle]
        let session = connections[handle].session
        var properties: [UInt8] = []
        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
        func add(_ property: Property) {
            PropertyEncoder.append(property, fieldsIn: nothing, to: &properties)
        }
        // Absent, it is the client's [MQTT-3.2.2-21].
        let granted = grantedExpiry(client.sessionExpiry)
        if granted != client.sessionExpiry { add(.sessionExpiryInterval(granted)) }
        let most = receiveMaximum
        if most < UInt16.max { add(.receiveMaximum(most)) }
        add(.maximumPacketSize(UInt32(clamping: context.limits.maxPacketBytes)))
        add(.topicAliasMaximum(TopicAliases.most))
        if client.wasNamed {
            sessions[session].clientID.withBytes {
                PropertyEncoder.append(
                    Property.assignedClientIdentifier, $0, to: &properties)
            }
        }
        let keepAlive = connections[handle].keepAlive.interval / 1_000
        if keepAlive != UInt32(sessions[session].keepAlive) {
            add(.serverKeepAlive(UInt16(clamping: keepAlive)))
        }
        let range = ByteRange(offset: 0, count: properties.count)
        var packet: [UInt8] = []
        properties.withUnsafeBytes { source in
            guard let checked = try? Properties(checking: range, in: source.bytes, for: .connack)
            else { preconditionFailure("the broker's own properties are no properties of CONNACK") }
            PacketEncoder5.append(
                .connack(.accepted(sessionPresent: sessionPresent, properties: checked)),
                fieldsIn: source, to: &packet)
        }
        guard packet.count <= client.maximumPacketSize else { return false }
        append(packet, to: handle)
        return true
    }

    /// Messages of QoS 1 and 2 that the broker takes from a client before it has answered the first.
    private var receiveMaximum: UInt16 {
        let most = min(
            Int(context.limits.maxInboundQoS2), context.limits.maxUnacknowledgedPublishes)
        return UInt16(clamping: max(1, most))
    }

    /// Appends the CONNACK that refuses a client [MQTT-3.2.2-7]. A reference that makes it larger than the
    /// client takes is left out, and so is CONNACK itself when it is too large without [MQTT-3.1.2-24].
    mutating func refuse5(_ handle: Handle, _ reason: CloseReason) {
        let code = reason.codeOfRefusal
        let allowed =
            code.isFailure && code.isAllowed(in: .connack, from: .server)
            ? code : ReasonCode.unspecifiedError
        var packet: [UInt8] = []
        withReference(for: reason, .connack) { properties, source in
            PacketEncoder5.append(
                .connack(.refused(allowed, properties: properties)), fieldsIn: source, to: &packet)
        }
        let most = clients5[handle].maximumPacketSize
        if packet.count > most {
            packet.removeAll()
            PacketEncoder5.append(
                .connack(.refused(allowed)),
                fieldsIn: UnsafeRawBufferPointer(start: nil, count: 0), to: &packet)
        }
        guard packet.count <= most else { return }
        append(packet, to: handle)
    }

    /// Appends the DISCONNECT that tells a client of 5.0 why its connection ends, by code and in words;
    /// false when none is sent. Nothing follows it [MQTT-3.14.4-1].
    mutating func disconnect5(_ handle: Handle, _ reason: CloseReason) -> Bool {
        guard let code = reason.codeOfDisconnect,
            connections[handle].outlet.count <= context.limits.outputBytes
        else { return false }
        let allowed =
            code.isAllowed(in: .disconnect, from: .server) ? code : ReasonCode.unspecifiedError
        var packet: [UInt8] = []
        let words = Array(reason.words.utf8)
        // The words go first when the client takes no packet that holds them [MQTT-3.14.2-3].
        let most = Int(clients5[handle].maximumPacketSize)
        var fits = false
        withReference(for: reason, .disconnect(.server)) { properties, source in
            fits = words.withUnsafeBytes {
                PacketEncoder5.append(
                    .disconnect(Disconnect5(allowed, properties: properties)), fieldsIn: source,
                    reasonString: $0, maximumSize: most, to: &packet)
            }
        }
        guard fits else { return false }
        append(packet, to: handle)
        context.counters.otherPacketsSent += 1
        return true
    }

    /// Calls `body` with the reference to the broker that a drain sends clients to, if it does.
    private func withReference(
        for reason: CloseReason, _ place: PropertyPlace,
        _ body: (Properties, UnsafeRawBufferPointer) -> Void
    ) {
        var encoded: [UInt8] = []
        if reason == .draining, let reference = drain.serverReference {
            Array(reference.utf8).withUnsafeBytes {
                PropertyEncoder.append(Property.serverReference, $0, to: &encoded)
            }
        }
        encoded.withUnsafeBytes { source in
            let range = ByteRange(offset: 0, count: source.count)
            // A reference that is no text is left out.
            let checked = try? Properties(checking: range, in: source.bytes, for: place)
            body(checked ?? .none, source)
        }
    }

    private mutating func append(_ packet: [UInt8], to handle: Handle) {
        packet.withUnsafeBytes {
            guard let base = $0.baseAddress else { return }
            connections[handle].outlet.append(packet: base, count: $0.count, pool: pool)
        }
    }

    // MARK: The end of sessions

    /// The seconds that a session outlives its connection, of those that its client asks for.
    func grantedExpiry(_ seconds: UInt32) -> UInt32 {
        let most = context.limits.sessionExpiry.wholeMilliseconds / 1_000
        return UInt64(seconds) > most ? UInt32(clamping: most) : seconds
    }

    /// Milliseconds that a session outlives its connection.
    func expiryMilliseconds(of session: UInt32) -> UInt64 {
        guard let terms = terms[session] else {
            return context.limits.sessionExpiry.wholeMilliseconds
        }
        return min(
            UInt64(terms.expiry) * 1_000, context.limits.sessionExpiry.wholeMilliseconds)
    }

    /// Changes how long a session outlives its connection.
    mutating func setExpiry(_ seconds: UInt32, of session: UInt32) {
        guard var changed = terms[session] else { return }
        changed.expiry = seconds
        setTerms(changed, of: session)
    }

    /// Sets a session's terms, and records them; `nil` for a session of an earlier version.
    mutating func setTerms(_ new: SessionTerms?, of session: UInt32) {
        guard terms[session] != new else { return }
        terms[session] = new
        let number = sessions[session].number
        let owner = sessions[session].clientID.withBytes { FactOwner($0) }
        if let new {
            commits.records.terms(new, of: number, owner)
        } else {
            commits.records.termsRemoved(of: number, owner)
        }
    }
}
