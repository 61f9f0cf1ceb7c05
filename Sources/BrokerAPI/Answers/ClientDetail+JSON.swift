/// The summary's members stand beside the others, so that a client looks the same in a list and alone.
extension ClientDetail: Codable {
    public init(from decoder: any Decoder) throws {
        summary = try ClientSummary(from: decoder)
        let members = try decoder.container(keyedBy: CodingKeys.self)
        subscriptionList = try members.decode([ClientSubscription].self, forKey: .subscriptionList)
        sessionBytes = try members.decode(Int.self, forKey: .sessionBytes)
        willTopic = try members.decodeIfPresent(String.self, forKey: .willTopic)
        lastPacketMsAgo = try members.decodeIfPresent(Int64.self, forKey: .lastPacketMsAgo)
        inboundQoS2 = try members.decode(Int.self, forKey: .inboundQoS2)
        unacknowledgedPublishes = try members.decode(Int.self, forKey: .unacknowledgedPublishes)
        unsentBytes = try members.decode(Int.self, forKey: .unsentBytes)
        readingPaused = try members.decode(Bool.self, forKey: .readingPaused)
        publishesReceived = try members.decode(UInt64.self, forKey: .publishesReceived)
        publishesSent = try members.decode(UInt64.self, forKey: .publishesSent)
        publishesSentQoS0 = try members.decode(UInt64.self, forKey: .publishesSentQoS0)
        publishesAcknowledged = try members.decode(UInt64.self, forKey: .publishesAcknowledged)
        dropped = try members.decode([String: UInt64].self, forKey: .dropped)
        lastDisconnectReason =
            try members.decodeIfPresent(String.self, forKey: .lastDisconnectReason)
        takeOvers = try members.decodeIfPresent(RepeatedTakeOvers.self, forKey: .takeOvers)
        heartbeatSeconds = try members.decodeIfPresent(Int.self, forKey: .heartbeatSeconds)
        report = try members.decodeIfPresent(ClientReport.self, forKey: .report)
        devices = try members.decodeIfPresent([DeviceModel].self, forKey: .devices)
    }

    public func encode(to encoder: any Encoder) throws {
        try summary.encode(to: encoder)
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(subscriptionList, forKey: .subscriptionList)
        try members.encode(sessionBytes, forKey: .sessionBytes)
        try members.encodeIfPresent(willTopic, forKey: .willTopic)
        try members.encodeIfPresent(lastPacketMsAgo, forKey: .lastPacketMsAgo)
        try members.encode(inboundQoS2, forKey: .inboundQoS2)
        try members.encode(unacknowledgedPublishes, forKey: .unacknowledgedPublishes)
        try members.encode(unsentBytes, forKey: .unsentBytes)
        try members.encode(readingPaused, forKey: .readingPaused)
        try members.encode(publishesReceived, forKey: .publishesReceived)
        try members.encode(publishesSent, forKey: .publishesSent)
        try members.encode(publishesSentQoS0, forKey: .publishesSentQoS0)
        try members.encode(publishesAcknowledged, forKey: .publishesAcknowledged)
        try members.encode(dropped, forKey: .dropped)
        try members.encodeIfPresent(lastDisconnectReason, forKey: .lastDisconnectReason)
        try members.encodeIfPresent(takeOvers, forKey: .takeOvers)
        try members.encodeIfPresent(heartbeatSeconds, forKey: .heartbeatSeconds)
        try members.encodeIfPresent(report, forKey: .report)
        try members.encodeIfPresent(devices, forKey: .devices)
    }
}
