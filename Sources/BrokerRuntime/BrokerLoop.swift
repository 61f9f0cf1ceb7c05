import Addresses
import BrokerAPI
import BrokerCore
import BrokerFeatures
import Authorization
import CLinux
import Glibc
import Logging
import MQTTCodec
import MQTTCore
import Store
import Structures
import SystemFiles
import TLS
import Threads
import Transport

/// Drives one shard with sockets: each turn is one commit, and one send per connection.
///
/// The loop is thin on purpose: it moves bytes between reactor and shard, tells the time, and logs
/// notices. All decisions are in ``Shard``.
package struct BrokerLoop: ~Copyable {
    /// Facts for status answers that the data plane does not know.
    package struct Identity: Sendable {
        package var version: String
        package var durability: String
        /// `nil` unless `durability` is "interval".
        package var durabilityIntervalMs: Int?

        package init(version: String, durability: String, durabilityIntervalMs: Int? = nil) {
            self.version = version
            self.durability = durability
            self.durabilityIntervalMs = durabilityIntervalMs
        }
    }

    /// Time for a peer to read its last answer before the connection closes.
    private static var lingerMilliseconds: UInt64 { 2_000 }

    /// Never read; see the same in ``Shard``.
    private let addressOnly: any Sendable = ()
    var reactor: Reactor
    var shard: Shard
    let mailbox: Mailbox<ShardMessage>
    var authenticator: Authenticator?
    /// Tells whether a login checks a password that could be guessed; see ``LoginCheck``.
    let mayBeGuess: @Sendable (AuthenticationRequest) -> Bool
    /// Logins that are checked elsewhere, or wait for it.
    var asked: AskedLogins
    /// By listener; `nil` for plain TCP.
    var contexts: [TLSContext?]
    /// `nil` without a TLS listener.
    let handshakes: HandshakeWorkers?
    var handshakeOrder = HandshakeOrder()
    var handshakeCounters = HandshakeCounters()
    /// Open connections whose clients showed a certificate.
    var verifiedClients = VerifiedClients()
    /// True while TLS listeners wait for a handshake to end before they accept.
    var waitsForHandshakes = false
    var admission: Admission
    var lockouts: Lockouts
    /// Listeners with waiting connections, one bit each; they accept at the end of the turn.
    var acceptable: UInt64 = 0
    /// The listener that accepted last; another one begins the next turn.
    var lastAccepting = 0
    /// By listener.
    var isAccepting: [Bool]
    /// Listeners pause until then, because connections exceed `limits.connect_rate`.
    var acceptAgainAt: MonotonicTime?
    var notices: NoticeLog
    var histories: ClientHistories
    var untold = UntoldOpenings()
    var tracer = Tracer()
    var settings: BrokerSettings
    let identity: Identity
    let drainSign: DrainSign
    var arrivals = Arrivals()
    private var lingering = LingeringConnections()
    var drainDeadline: MonotonicTime?
    var memory = MemoryWatch()
    var turns = TurnTimes()
    /// By connection index: sockets that failed while input of their clients was unread.
    var failures: [UInt32: FailedSocket] = [:]
    private var reportedShortages: UInt64 = 0

    /// Restores the store's content and opens the listeners; ``run()`` serves them. Without
    /// `logins` user names are unproven; without `access` everything is allowed.
    ///
    /// - Throws: ``SystemError``, ``ListenFailure``, or an error of reading the store.
    package init(
        settings: BrokerSettings, store: any Store, mailbox: Mailbox<ShardMessage>,
        logins: LoginCheck?, access: AccessRules? = nil, bans: BanTable? = nil,
        identity: Identity, drainSign: DrainSign, logger: Logger
    ) throws {
        var shard = Shard(
            limits: settings.limits, allowsAnonymous: settings.listeners.map(\.allowsAnonymous),
            systemTopicInterval: settings.systemTopicInterval, store: store,
            verifiesPasswords: logins != nil,
            asksBeforeCertificates: logins?.asksBeforeCertificates ?? false, access: access,
            bans: bans,
            seed: UInt64.random(in: .min ... .max), now: Self.clock(), wallClockMs: hermes_wall_ms()
        )
        if store.isRecording {
            try store.restore(&shard)
            shard.finishRestoring()
            try store.start()
        }
        var reactor = try Reactor(pool: shard.pool)
        try reactor.register(mailbox)
        Self.setWebSocket(settings, &reactor)
        for (index, listener) in settings.listeners.enumerated() {
            do throws(SystemError) {
                _ = try reactor.listen(
                    address: listener.address, port: listener.port,
                    isIPv6Only: listener.isIPv6Only, userTimeout: settings.userTimeout)
            } catch {
                throw ListenFailure(
                    section: "listeners[\(index)]", address: error.subject, code: error.code)
            }
        }
        var authenticator: Authenticator?
        if let logins {
            authenticator = try Authenticator(logins) { request, answer in
                let message = ShardMessage.authenticated(
                    request.connection, answer, mayBeGuess: logins.mayBeGuess(request))
                // The shard's next turns make room.
                while mailbox.post(message, isUrgent: true) == .full { usleep(1_000) }
            }
        }
        let handshakes = try Self.handshakeWorkers(settings, mailbox)
        shard.outside.version = identity.version
        shard.outside.durability = identity.durability
        shard.outside.setMemory(ProcessFigures.memory())
        histories = ClientHistories(hash: shard.hash, pool: shard.pool)
        admission = Admission(Admission.Limits(settings.limits), hash: shard.hash)
        lockouts = Lockouts(Lockouts.Limits(settings.limits), hash: shard.hash)
        self.reactor = reactor
        self.shard = shard
        self.mailbox = mailbox
        self.authenticator = authenticator
        asked = AskedLogins(isUsed: logins?.ask != nil)
        mayBeGuess = { request in logins?.mayBeGuess(request) ?? false }
        contexts = settings.listeners.map(\.tls)
        isAccepting = settings.listeners.map { _ in true }
        self.handshakes = handshakes
        self.settings = settings
        self.identity = identity
        self.drainSign = drainSign
        notices = NoticeLog(logger: logger, connections: settings.connectionLogLevel)
    }

    /// Addresses that accept connections, with their actual ports.
    package var listenerAddresses: [String] { reactor.listenerAddresses }

    /// Serves until a ``ShardMessage/stop`` has been carried out.
    package mutating func run() throws(SystemError) {
        shard.reportsLifecycle = wantsLifecycle
        shard.reportsWaiting = notices.wantsDetails
        while try turn() {}
        shard.abandonReplies()
        authenticator?.stop()
        // Drops waiting steps; a worker that waits for the mailbox finds it closed.
        handshakes?.close()
        // Answer each waiting command, so that no caller waits forever.
        for case .command(let command) in arrivals.takeMail() + mailbox.close() {
            command.refuse(.stopping)
        }
        handshakes?.waitUntilEnded()
    }

    /// One turn; false after the last.
    private mutating func turn() throws(SystemError) -> Bool {
        if arrivals.areEventsHandled {
            arrivals.setEvents(try reactor.wait(milliseconds: timeout()))
        }
        let begin = hermes_monotonic_us()
        shard.beginTurn(
            at: MonotonicTime(milliseconds: begin / 1_000), microseconds: begin,
            wallClockMs: hermes_wall_ms())
        tellShard()
        if tracer.isActive { tellTraceRoom() }
        handleEvents(from: begin)
        handleMail()
        handleNewcomers()
        acceptWaiting()
        if shard.hasOperatorWork { continueOperatorWork() }
        watchMemory()
        takeSteps()
        closeEndedSockets()
        resumeAccepting()
        if lingering.nextDeadline != nil { endLingering() }
        turns.add(from: begin, to: hermes_monotonic_us())
        return !isDrained
    }

    @inline(never)
    private mutating func continueOperatorWork() {
        shard.continueListings(
            address: { reactor.address(of: $0) }, peer: { reactor.peerAddress(of: $0) })
        continueBans()
        shard.continueUserDisconnects()
        continueDrain()
    }

    /// Takes the turn's steps in the shard's order.
    private mutating func takeSteps() {
        while true {
            switch shard.nextStep() {
            case .readOverdue(let handle): read(handle)
            case .offerInput(let handle): resume(handle)
            case .send(let handle): write(handle)
            case .carryOut:
                submitHandshakes()
                carryOut(shard.takeResult())
            case .finish:
                submitHandshakes()
                if tracer.isActive { finishTraces() }
                return
            }
        }
    }

    /// Logs notices while the kernel still knows the peers' addresses, then closes connections.
    private mutating func carryOut(_ result: TurnResult) {
        for request in result.authentications { submit(request) }
        for notice in result.notices {
            remember(notice)
            log(notice)
        }
        for closing in result.closing { close(closing) }
    }

    /// Closes ended connections at once.
    mutating func closeEnded() { carryOut(shard.closeNow()) }

    /// Sets outside figures and time, before the turn's events.
    private mutating func tellShard() {
        shard.outside.bytesReceived = reactor.bytesReceived
        shard.outside.bytesSent = reactor.bytesSent
        if reactor.kernelShortages != reportedShortages {
            reportedShortages = reactor.kernelShortages
            notices.logKernelShortage(now: shard.now)
        }
        guard shard.isSampleDue else { return }
        shard.outside.setMemory(ProcessFigures.memory())
        shard.takeSample()
    }

    private static func clock() -> MonotonicTime {
        MonotonicTime(milliseconds: hermes_monotonic_ms())
    }

    private mutating func timeout() -> CInt {
        guard reactor.endedSocketCount == 0, !arrivals.hasMail else { return 0 }
        var deadline = shard.planTurn()
        if let first = lingering.nextDeadline { deadline = min(deadline ?? first, first) }
        if let handshakeDeadline {
            deadline = min(deadline ?? handshakeDeadline, handshakeDeadline)
        }
        if let acceptAgainAt { deadline = min(deadline ?? acceptAgainAt, acceptAgainAt) }
        if let memoryDeadline { deadline = min(deadline ?? memoryDeadline, memoryDeadline) }
        if let drainDeadline { deadline = min(deadline ?? drainDeadline, drainDeadline) }
        guard let deadline else { return -1 }
        return CInt(clamping: deadline.milliseconds(since: turns.lastEnd ?? Self.clock()))
    }

    // MARK: Bytes

    mutating func read(_ handle: Handle) {
        // Most of it would have to be kept until a later turn.
        reactor.readsLittle = shard.isTurnSpent
        switch reactor.receive(handle) {
        case .wouldBlock: if let failure = failure(of: handle) { end(handle, failure) }
        case .bytes(let bytes):
            keep(handle, bytes, from: offer(handle, bytes))
        case .proxyHeader: if admitProxied(handle) { read(handle) }
        case .malformedProxyHeader(let error): end(handle, .proxyHeader(flaw: error.rawValue))
        case .brokenWebSocket(let flaw): end(handle, .webSocket(flaw: flaw.rawValue))
        case .endOfStream: end(handle, failure(of: handle) ?? .peerClosed)
        case .failed(let error):
            let alert = reactor.brokenRecordAlert(of: handle)
            end(
                handle,
                alert.map { .tlsRecord(alert: $0.rawValue) } ?? failure(of: handle)
                    ?? .networkError(code: error.code))
        }
    }

    mutating func write(_ handle: Handle) {
        if tracer.isActive { traceOutput(handle) }
        defer { if tracer.isActive { traceUnsent(handle) } }
        let sent = shard.withOutput(of: handle) {
            reactor.send(handle, &$0, atMost: Shard.mostSentAtOnce)
        }
        switch sent {
        case .blocked: return
        case .part:
            // The rest of a closed connection's output goes with the events of its socket.
            if shard.isCurrent(handle) { shard.sentPart(handle) } else { reactor.awaitRoom(handle) }
        case .failed(let error): fail(handle, .networkError(code: error.code))
        case .all:
            shard.drained(handle)
            finishLingering(handle)
        }
    }

    mutating func end(_ handle: Handle, _ reason: CloseReason) {
        if let origin = lingering.origin(of: handle) { drop(handle, origin: origin) }
        shard.lost(handle, reason)
    }

    private mutating func resume(_ handle: Handle) {
        reactor.resumeReading(handle)
        let kept = reactor.keptInput(handle)
        guard !kept.isEmpty else { return }
        keep(handle, kept, from: offer(handle, kept))
    }

    /// Has the shard take packets; returns the number of bytes that it has consumed.
    private mutating func offer(_ handle: Handle, _ bytes: UnsafeRawBufferPointer) -> Int {
        let consumed =
            reactor.holdsTokens ? offerWithToken(handle, bytes) : shard.receive(handle, bytes)
        if tracer.isActive {
            traceInput(handle, UnsafeRawBufferPointer(rebasing: bytes[..<consumed]))
        }
        return consumed
    }

    private mutating func keep(
        _ handle: Handle, _ bytes: UnsafeRawBufferPointer, from consumed: Int
    ) {
        reactor.keep(
            handle, bytes, from: consumed,
            isHeldBack: consumed < bytes.count && shard.holdsInput(handle))
    }

    private mutating func submit(_ request: AuthenticationRequest) {
        guard !refusesLockedOut(request) else { return }
        var request = request
        if !sharesByAddress(request.connection) { request.origin = 0 }
        request.address = reactor.peerAddress(of: request.connection)
        request.isGone = asked.begin(request.connection)
        if authenticator?.submit(request) != true {
            asked.end(request.connection)
            shard.authenticated(request.connection, .busy(detail: nil))
        }
    }

    // MARK: Closing

    mutating func close(_ closing: Closing) {
        asked.leave(closing.connection)
        let tellsPeer = setCloseCode(of: closing)
        guard closing.afterOutput || tellsPeer else {
            drop(closing.connection, origin: closing.origin)
            return
        }
        lingering.add(
            closing.connection, origin: closing.origin,
            until: shard.now.advanced(byMilliseconds: Self.lingerMilliseconds))
        reactor.discardKeptInput(closing.connection)
        write(closing.connection)
    }

    /// Ends the stream of a closed connection whose output the kernel has. Closing at once could
    /// reset the connection before the peer has read it.
    private mutating func finishLingering(_ handle: Handle) {
        if lingering.finish(handle) { reactor.finishSending(handle) }
    }

    private mutating func endLingering() {
        while let ended = lingering.popExpired(now: shard.now) {
            if drainDeadline != nil, !ended.isFinished {
                // During shutdown, unsent output may linger until the drain deadline.
                lingering.add(
                    ended.handle, origin: ended.origin,
                    until: shard.now.advanced(byMilliseconds: Self.lingerMilliseconds))
            } else {
                drop(ended.handle, origin: ended.origin)
            }
        }
    }

    private mutating func drop(_ handle: Handle, origin: UInt32) {
        lingering.remove(handle)
        if tracer.isActive { tracer.forget(handle) }
        if !failures.isEmpty { failures[handle.index] = nil }
        leave(handle, origin: origin)
        shard.discardOutput(handle)
        if handshakes != nil {
            handshakeOrder.end(handle)
            verifiedClients.remove(handle)
        }
        reactor.close(handle)
    }

    // MARK: Messages from other threads

    mutating func handle(_ message: ShardMessage) {
        switch message {
        case .authenticated(let handle, let answer, let mayBeGuess):
            finishCheck(handle, answer, mayBeGuess: mayBeGuess)
        case .handshake(let handle, let outcome): finishStep(handle, outcome)
        case .certificates(let contexts): take(contexts)
        case .command(let command): perform(command)
        case .limits(let limits):
            settings.limits = limits
            admission.limits = Admission.Limits(limits)
            lockouts.limits = Lockouts.Limits(limits)
            // It was computed from the old rate.
            acceptAgainAt = nil
            passLimits()
            // A reload may change the log level too.
            shard.reportsLifecycle = wantsLifecycle
            shard.reportsWaiting = notices.wantsDetails
            shard.trimReports()
            shard.adoptWakeRules()
            histories.trim(to: limits.historyBytes)
            // Without histories nobody tells of the ends of connections.
            if limits.historyBytes == 0 { untold.removeAll() }
        case .access(let rules):
            shard.setAccess(rules)
            notices.forgetAccess()
        case .stop: stop()
        }
    }

    private mutating func stop() {
        // The second request ends the drain.
        guard drainDeadline == nil else {
            drainDeadline = shard.now
            return
        }
        drainDeadline = shard.now.advanced(
            byMilliseconds: settings.limits.drainTimeout.wholeMilliseconds)
        // All connections end at once, and only a log in full detail is to tell of each.
        shard.reportsLifecycle = notices.wantsDetails
        reactor.closeListeners()
        isAccepting = []
        waitsForHandshakes = false
        acceptAgainAt = nil
        shard.endDrain()
        shard.shutDown()
    }

    /// True during shutdown once every peer has read its output or run out of time.
    private var isDrained: Bool {
        guard let drainDeadline else { return false }
        return reactor.connectionCount == 0 || shard.now >= drainDeadline
    }
}
