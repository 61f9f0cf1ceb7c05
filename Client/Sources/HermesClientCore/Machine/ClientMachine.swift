import MQTTCodec

/// Decides all that the client does; performs no input and output, reads no clock, takes no lock.
///
/// The driver calls one method for each event and then does what ``takeActions()`` gives, in that
/// order; it calls ``timeReached(at:)`` at ``nextDeadline``.
///
/// ```
/// stopped ──start──> opening ──transport──> handshaking ──CONNACK──> connected
///                     ^   │                      │  │                   │
///                     │   └──── failed ──────────┘  └─ 4, 5: awaitingCredentials
///                 waiting <──────────────────────────── lost ───────────┘
/// ```
/// `stop` leads to `stopped` from everywhere, and entering the background to `suspended`; from there
/// only the foreground and a wake-up lead on.
package struct ClientMachine: Sendable {
    /// A timer that comes later shows that the program was suspended without being told.
    static let lateMilliseconds: Int64 = 5_000
    /// A push that comes so soon after the start has launched the program, in the background.
    static let launchMilliseconds: Int64 = 2_000
    /// The least time between two tries for which changes of the network are the only reason.
    static let networkTryMilliseconds: Int64 = 5_000
    static let lookMilliseconds: Int64 = 5_000
    static let openMilliseconds: Int64 = 15_000
    /// For an address behind which another one waits.
    static let addressMilliseconds: Int64 = 5_000
    static let connackMilliseconds: Int64 = 10_000
    static let credentialsMilliseconds: Int64 = 30_000
    /// A wake-up in the background holds a connection for this long; the system grants some 30 s.
    static let wakeMilliseconds: Int64 = 25_000
    static let reportMilliseconds: Int64 = 3_600_000
    static let smartKeepAliveSeconds: UInt16 = 600
    /// A reconnect within this time shows that a lost connection was not the network's fault.
    static let quickReconnectMilliseconds: Int64 = 30_000

    enum Phase {
        case stopped(StopReason)
        case suspended
        case waiting(until: Int64)
        case awaitingCredentials(until: Int64)
        case opening(ConnectionNumber, until: Int64)
        /// A transport connection without CONNECT tells whether the broker is there.
        case looking(ConnectionNumber, until: Int64)
        /// CONNECT is sent. The link is in ``ClientMachine/link``.
        case handshaking(until: Int64)
        case connected(since: Int64)
    }

    /// The transport connection from CONNECT on.
    struct Link {
        let number: ConnectionNumber
        var stream: PacketStream
        var heartbeat: Heartbeat
        /// A CONNECT before had no CONNACK: a session that is present may be younger than the client
        /// knows, and only DUP tells a redelivery.
        let isUncertain: Bool
        /// The first so many messages of the outbox are sent on this connection.
        var sent = 0
        /// When a PUBLISH of QoS 1 or 2 was last sent.
        var publishedAt = Int64.min / 2
        /// Suspects wait until what the broker has for the app is acknowledged.
        var gate: Gate?
        var report = Report.none
        /// Identifiers of messages that were sent and that the app has discarded since.
        var discarded: Set<PacketIdentifier> = []
        /// When a message or an acknowledgement last went in either direction.
        var messageAt = Int64.min / 2
        /// SUBSCRIBE or UNSUBSCRIBE is under way; one at a time.
        var request: SubscriptionRequest?
        /// Renewals that the broker has refused on this connection.
        var refused: Set<[UInt8]> = []
        /// The count of tries has begun anew, because the connection is a minute old.
        var isProven = false
    }

    /// Holds suspects of ``ClientMachine/refusals`` back, because one of them may end the connection:
    /// what the broker has for the app comes first. It opens when a PINGRESP finds nothing new and
    /// nothing to be acknowledged, and after 10 s in any case.
    struct Gate {
        static let mostMilliseconds: Int64 = 10_000

        var until: Int64
        /// A PINGREQ is on its way.
        var hasAsked = false
        /// A message has come since that PINGREQ.
        var hasArrival = false
    }

    /// The report on one connection.
    enum Report: Equatable {
        case none
        /// ``ClientAction/reportDue`` was performed.
        case asked
        case sent(PacketIdentifier)
    }

    struct SubscriptionRequest {
        var identifier: PacketIdentifier
        var filters: [Subscription]
        var isUnsubscribe: Bool
        var deadline: Int64
    }

    let settings: ClientSettings
    var random: any ClientRandom
    var credentials: ClientCredentials?
    /// Credentials have been asked for since the last accepted connection.
    var hasAskedForCredentials = false

    package internal(set) var stored: StoredState
    /// The counts that are stored, and those that are not yet.
    package var counters: ClientCounters { stored.counters.adding(uncounted) }
    /// Counts that are stored at the end of the connection: the others stand in records of their
    /// own, together with what was counted.
    var uncounted = ClientCounters()
    /// Bytes of the log, and of its content when it was last compacted or read.
    var logBytes: Int
    var compactedBytes: Int

    var phase = Phase.stopped(.notStarted)
    var link: Link?
    var reconnect = ReconnectRule()
    /// The app is on the screen, as far as it has told.
    package internal(set) var isForeground = true
    /// The app has told of foreground or background.
    var knowsLife = false
    var startedAt = Int64.min / 2
    /// A timer came late at this time.
    var lateAt = Int64.min / 2
    /// The end of a wake-up in the background.
    var awakeUntil: Int64?
    /// `nil`: unknown, or no network; all such share one rhythm.
    package internal(set) var networkLabel: [UInt8]?
    /// The app has told of the network.
    var knowsNetwork = false
    var networkTryAt = Int64.min / 2
    /// A connection fell silent after a whole interval on this network, at this time.
    var suspicion: (label: [UInt8], at: Int64)?
    var reportAt: Int64?

    var inbox = Inbox()
    var losses = LossWatch()
    /// A topic that each channel's messages had, in this life of the program.
    var channelTopics: [[UInt8]: [UInt8]] = [:]
    /// Keys of messages that may have been sent before, and get DUP.
    var attempted: Set<UInt64>
    var refusals = RefusalWatch()
    /// A report that was refused waits so long.
    var reportHoldMilliseconds = RefusalWatch.firstReportHoldMilliseconds
    /// The broker has not acknowledged the last report.
    var isReportDue = false
    var reportTopic: [UInt8]?
    var nextKey: UInt64
    var lastIdentifier: UInt16
    var nextConnection: UInt64 = 1
    var addresses: AddressOrder
    /// What ended the last connection, or failed the last try.
    package internal(set) var lastDrop: DropReason?

    private enum Step {
        case action(ClientAction)
        /// Records that follow each other, for one frame.
        case records(RecordWriter)
    }

    private var steps: [Step] = []

    /// Goes on with what the log held; `logBytes` is its sound length, 0 for no file.
    package init(
        settings: ClientSettings, stored: StoredState, logBytes: Int, random: any ClientRandom
    ) {
        self.settings = settings
        self.stored = stored
        self.logBytes = logBytes
        compactedBytes = ClientLog.file(stored).count
        credentials = settings.credentials
        addresses = AddressOrder(count: max(settings.addresses, 1))
        for (channel, window) in stored.channels.windows { losses.restore(channel, window) }
        // Which of them were sent is not stored; no more than the window can have been.
        let outbox = stored.outbox
        attempted = Set(
            (outbox.messages.prefix(settings.limits.inFlight) + outbox.held).map(\.key))
        nextKey = ((outbox.messages + outbox.held).map(\.key).max() ?? 0) + 1
        // A session that this log knows nothing of may hold identifiers: the broker would take a
        // message with one of them for a repeat.
        var random = random
        lastIdentifier = UInt16(truncatingIfNeeded: random.number(in: 1...65_535))
        self.random = random
    }

    /// A push holds a connection in the background.
    package var isAwakeInBackground: Bool { awakeUntil != nil }

    /// The time of the monotonic clock at which ``timeReached(at:)`` is to be called; `nil` for
    /// never.
    package var nextDeadline: Int64? {
        var deadline = Int64.max
        switch phase {
        case .stopped, .suspended: break
        case .waiting(let until), .awaitingCredentials(let until), .opening(_, let until),
            .looking(_, let until), .handshaking(let until):
            deadline = until
        case .connected(let since):
            if let link { deadline = connectedDeadline(link, since: since) }
        }
        if let awakeUntil { deadline = min(deadline, awakeUntil) }
        if let reportAt { deadline = min(deadline, reportAt) }
        return deadline == .max ? nil : deadline
    }

    private func connectedDeadline(_ link: Link, since: Int64) -> Int64 {
        var deadline = link.heartbeat.deadline
        if let packet = link.stream.deadline { deadline = min(deadline, packet) }
        if let request = link.request { deadline = min(deadline, request.deadline) }
        if !link.isProven { deadline = min(deadline, since + ReconnectRule.provenMilliseconds) }
        if let loss = losses.deadline { deadline = min(deadline, loss) }
        if let reminder = inbox.reminderDeadline { deadline = min(deadline, reminder) }
        if let gate = link.gate { deadline = min(deadline, gate.until) }
        if let retry = refusals.nextRetry(of: stored.outbox.held) {
            deadline = min(deadline, retry)
        }
        return deadline
    }

    /// The actions since the last call, in the order in which they are to be done.
    package mutating func takeActions() -> [ClientAction] {
        var actions = steps.map { step in
            switch step {
            case .action(let action): return action
            case .records(let records):
                let frame = ClientLog.frame(records)
                if logBytes == 0 { logBytes = ClientLog.header.count }
                logBytes += frame.count
                return .store(frame: frame)
            }
        }
        steps = []
        // The log has grown to twice its content.
        if logBytes > 2 * compactedBytes + (64 << 10) {
            let file = ClientLog.file(stored)
            (logBytes, compactedBytes) = (file.count, file.count)
            actions.append(.replaceLog(file))
        }
        return actions
    }

    // MARK: Actions

    mutating func perform(_ action: ClientAction) { steps.append(.action(action)) }

    /// Changes what is stored; changes that follow each other become one frame.
    mutating func record(_ record: StoredRecord) {
        var records = RecordWriter()
        if case .records(let earlier)? = steps.last {
            steps.removeLast()
            records = earlier
        }
        if stored.owner == nil {
            let owner = StoredRecord.owner(settings.clientID)
            stored.apply(owner)
            owner.encode(to: &records)
        }
        stored.apply(record)
        record.encode(to: &records)
        steps.append(.records(records))
    }

    /// Sends bytes on the link; writes that follow each other become one.
    mutating func send(_ bytes: [UInt8], at now: Int64) {
        guard let number = link?.number else { return }
        link?.heartbeat.noteWrite(at: now)
        if case .action(.write(number, var earlier))? = steps.last {
            steps.removeLast()
            earlier += bytes
            perform(.write(number, earlier))
        } else {
            perform(.write(number, bytes))
        }
    }

    mutating func send(_ type: PacketType, _ identifier: PacketIdentifier, at now: Int64) {
        let word = PacketEncoder.fourBytes(type, identifier)
        send((0..<4).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) }, at: now)
    }
}
