extension ClientMachine {
    /// The app wants a connection from now on, until ``stop(at:)``.
    package mutating func start(at moment: Moment) {
        guard case .stopped = phase else { return }
        reconnect.restart()
        hasAskedForCredentials = false
        if isForeground { connect(at: moment) } else { suspend() }
    }

    /// The app wants no connection any longer.
    package mutating func stop(at moment: Moment) {
        if case .stopped = phase { return }
        storeCounters()
        disconnect(at: moment.monotonicMilliseconds)
        stop(.requested)
    }

    /// The system will suspend the program: the broker is told, and every socket is closed.
    package mutating func enteredBackground(at moment: Moment) {
        isForeground = false
        awakeUntil = nil
        if case .stopped = phase { return }
        storeCounters()
        if case .suspended = phase { return }
        disconnect(at: moment.monotonicMilliseconds)
        suspend()
    }

    /// The app is on the screen. A connection of before is not trusted, because the system may have
    /// taken its socket without telling: the client always connects anew.
    package mutating func enteredForeground(at moment: Moment) {
        isForeground = true
        awakeUntil = nil
        connectAnew(at: moment)
    }

    /// A push notification has woken the program. In the background the connection lasts 25 s.
    package mutating func wokenByPush(at moment: Moment) {
        if case .stopped = phase { return }
        if !isForeground {
            awakeUntil = moment.monotonicMilliseconds + Self.wakeMilliseconds
        }
        switch phase {
        case .connected: probe(at: moment)
        case .suspended, .waiting:
            reconnect.restart()
            connect(at: moment)
        case .stopped, .awaitingCredentials, .opening, .handshaking: break
        }
    }

    /// The device uses another network, which `label` names, or none (`nil`). The label is any
    /// bytes, of which 128 count.
    package mutating func networkChanged(to label: [UInt8]?, at moment: Moment) {
        networkLabel = label
        switch phase {
        case .stopped, .suspended, .awaitingCredentials: break
        case .waiting:
            guard label != nil else { return }
            reconnect.restart()
            connect(at: moment)
        case .opening, .handshaking:
            guard label != nil else { return }
            connectAnew(at: moment)
        case .connected:
            reconnect.restart()
            followRhythm()
            probe(at: moment)
        }
    }

    private mutating func connectAnew(at moment: Moment) {
        switch phase {
        case .stopped, .awaitingCredentials: return
        case .suspended, .waiting, .opening, .handshaking, .connected: break
        }
        disconnect(at: moment.monotonicMilliseconds)
        reconnect.restart()
        connect(at: moment)
    }

    /// The connection must show within 3 s that it is alive.
    private mutating func probe(at moment: Moment) {
        let now = moment.monotonicMilliseconds
        if link?.heartbeat.probe(at: now) == true { sendPing(at: now) }
    }

    // MARK: Time

    /// Does what is due. A call before ``nextDeadline`` does nothing.
    package mutating func timeReached(at moment: Moment) {
        let now = moment.monotonicMilliseconds
        if let reportAt, now >= reportAt {
            self.reportAt = now + Self.reportMilliseconds
            storeCounters()
            perform(.reportDue)
        }
        if let awakeUntil, now >= awakeUntil {
            disconnect(at: now)
            suspend()
            return
        }
        switch phase {
        case .stopped, .suspended: break
        case .waiting(let until):
            if now >= until { connect(at: moment) }
        case .awaitingCredentials(let until):
            guard now >= until else { return }
            // The app may answer later; the next refusal asks it again.
            credentialsFailed(at: moment)
        case .opening(_, let until):
            if now >= until { drop(.openTimeout, at: moment) }
        case .handshaking(let until):
            if now >= until { drop(.connackTimeout, at: moment) }
        case .connected(let since):
            connectedTimeReached(since: since, at: moment)
        }
    }

    private mutating func connectedTimeReached(since: Int64, at moment: Moment) {
        let now = moment.monotonicMilliseconds
        if link?.isProven == false, now - since >= ReconnectRule.provenMilliseconds {
            link?.isProven = true
            reconnect.restart()
        }
        tellLosses(at: now)
        if let deadline = link?.stream.deadline, now >= deadline {
            drop(.unfinishedPacket, at: moment)
            return
        }
        if let deadline = link?.request?.deadline, now >= deadline {
            drop(.subscriptionTimeout, at: moment)
            return
        }
        switch link?.heartbeat.timeReached(now) ?? .nothing {
        case .nothing: break
        case .ping: sendPing(at: now)
        case .silent(let isProbe, let provesLimit):
            if provesLimit { noteSilence(at: now) }
            drop(isProbe ? .probeFailed : .silent, at: moment)
        }
    }

    /// Stores the counters, which change too often to be stored with each change.
    mutating func storeCounters() {
        if counters != stored.counters { record(.counters(counters)) }
    }
}
