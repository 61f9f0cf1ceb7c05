import MQTTCodec

extension ClientMachine {
    /// The keep alive of CONNECT in seconds. More than the rhythm, so that a broker which allows
    /// one and a half of it never closes a client that is in time.
    var keepAliveSeconds: UInt16 {
        switch settings.heartbeat {
        case .fixed(let seconds): Self.bounded(seconds) + 30
        case .smart: Self.smartKeepAliveSeconds
        }
    }

    /// The silence that the present network is taken to bear.
    var intervalMilliseconds: Int64 {
        switch settings.heartbeat {
        case .fixed(let seconds): Int64(Self.bounded(seconds)) * 1_000
        case .smart: Int64(stored.rhythms[label]?.seconds ?? SmartRhythm.leastSeconds) * 1_000
        }
    }

    /// Seconds between two PINGREQs without other traffic, for the report.
    package var heartbeatSeconds: Int { Int(intervalMilliseconds / 1_000) }

    private static func bounded(_ seconds: UInt16) -> UInt16 { min(max(seconds, 10), 3_600) }

    private var label: [UInt8] {
        Array((networkLabel ?? []).prefix(RhythmTable.mostLabelBytes))
    }

    /// The connection takes over the rhythm of the present network.
    mutating func followRhythm() {
        let interval = intervalMilliseconds
        link?.heartbeat.intervalMilliseconds = interval
    }

    mutating func sendPing(at now: Int64) {
        var bytes: [UInt8] = []
        PacketEncoder.append(
            .pingreq, fieldsIn: UnsafeRawBufferPointer(start: nil, count: 0), to: &bytes)
        send(bytes, at: now)
    }

    mutating func receivePingresp(at moment: Moment) {
        gateAnswered(at: moment.monotonicMilliseconds)
        guard let provesInterval = link?.heartbeat.answered(), provesInterval else { return }
        changeRhythm(at: moment) { $0.noteSuccess(at: moment) }
    }

    /// A connection fell silent after an interval without traffic. Only a reconnect tells whether
    /// the network had forgotten the connection or was not there.
    mutating func noteSilence(at now: Int64) { suspicion = (label, now) }

    mutating func noteQuickReconnect(at moment: Moment) {
        guard let (suspected, silentAt) = suspicion else { return }
        suspicion = nil
        let elapsed = moment.monotonicMilliseconds - silentAt
        guard suspected == label, elapsed <= Self.quickReconnectMilliseconds else { return }
        changeRhythm(at: moment) { $0.noteFailure(at: moment) }
    }

    private mutating func changeRhythm(
        at moment: Moment, _ change: (inout SmartRhythm) -> Void
    ) {
        guard settings.heartbeat == .smart else { return }
        let before = stored.rhythms[label]
        var rhythm =
            before ?? SmartRhythm(changedAtUnixMilliseconds: moment.unixMilliseconds)
        change(&rhythm)
        guard rhythm != before else { return }
        record(.rhythm(label, rhythm))
        followRhythm()
    }
}
