import BrokerAPI

/// What becomes of notifications: answers, streams and connections that end, and times.
extension NotificationQueue {
    /// Has a notification that got no judgement wait again.
    private mutating func waitAgain(_ tag: UInt32) {
        guard let item = items[Int(tag)] else { return }
        guard !item.isWithdrawn else { return end(tag, .givenBack, "the client has come back") }
        leave(item)
        items[Int(tag)]?.state = .waiting
        list(tag, item.serial, in: item.lane)
        repeated += 1
    }

    /// Takes the service's answer to a notification.
    mutating func answered(_ tag: UInt32, _ answer: ProviderAnswer, at now: UInt64) {
        guard let item = items[Int(tag)] else { return }
        let word = answer.word
        switch answer.meaning {
        case .accepted:
            lanes[item.lane].health.passed(at: now)
            end(tag, .accepted, word)
        case .gone(let atMs):
            lanes[item.lane].health.passed(at: now)
            end(tag, .gone(atMs: atMs), word)
        case .unknownDevice: setAside(tag, word, at: now)
        case .unfitKey:
            // While the key is good for anybody, it is this device that is not ours.
            let identity = ServiceRoutes.identity(lanes[item.lane].app.service)
            let isGood = lanes.contains {
                ServiceRoutes.identity($0.app.service) == identity && $0.health.passes(at: now)
            }
            if isGood {
                setAside(tag, word, at: now)
            } else {
                refuse(tag, .unfitKey, word, at: now)
            }
        case .credentials, .otherKey: refuse(tag, .credentials, word, at: now)
        case .expiredToken: refuse(tag, .expiredToken, word, at: now)
        case .tooManyTokens: refuse(tag, .tooManyTokens, word, at: now)
        case .topic: refuse(tag, .topic, word, at: now)
        case .busyDevice: end(tag, .later(milliseconds: 60_000), word)
        case .busyService: refuse(tag, .busy, word, asked: answer.pause, at: now)
        case .service: end(tag, .later(milliseconds: 5_000), word)
        case .closing: repeatOrEnd(tag, .later(milliseconds: 1_000), word)
        case .refused: end(tag, .refused, word)
        }
    }

    private mutating func setAside(_ tag: UInt32, _ word: String, at now: UInt64) {
        guard let lane = items[Int(tag)]?.lane else { return }
        let former = lanes[lane].health.most
        lanes[lane].health.unknownDevice(at: now)
        if lanes[lane].health.most != former { isStirred = true }
        end(tag, .badDevice, word)
    }

    private mutating func refuse(
        _ tag: UInt32, _ cause: AppHealth.Cause, _ word: String, asked: UInt64? = nil,
        at now: UInt64
    ) {
        guard let item = items[Int(tag)] else { return }
        isStirred = true
        let verdict = lanes[item.lane].health.refused(
            cause, word, device: item.request.handOut.device, asked: asked ?? 0, at: now)
        switch verdict {
        case .later: end(tag, .later(milliseconds: 1_000), word)
        case .giveBack: end(tag, .givenBack, word)
        case .thisOne:
            // An app is right or wrong for all its devices, so this may be the first of many.
            let isFirst = item.request.attempt < Self.mostTries
            switch cause {
            case .topic: end(tag, isFirst ? .later(milliseconds: 5_000) : .refused, word)
            case .credentials, .unfitKey, .expiredToken:
                end(tag, .later(milliseconds: 5_000), word)
            case .tooManyTokens: end(tag, .later(milliseconds: 60_000), word)
            case .busy: end(tag, .later(milliseconds: asked ?? 60_000), word)
            }
        }
    }

    /// Has a notification sent again, because what was wrong with its first sending is mended.
    mutating func sendAgain(_ tag: UInt32, _ word: String) {
        repeatOrEnd(tag, .later(milliseconds: 1_000), word)
    }

    private mutating func repeatOrEnd(
        _ tag: UInt32, _ outcome: WakeAnswer.Outcome, _ reason: String
    ) {
        guard let item = items[Int(tag)] else { return }
        items[Int(tag)]?.tries += 1
        if item.tries + 1 >= Self.mostTries {
            end(tag, outcome, reason)
        } else {
            waitAgain(tag)
        }
    }

    /// A stream ended without an answer. The first that the service did not begin to process is sent again
    /// at once; more of them after growing pauses, since a service may refuse for ever.
    mutating func streamEnded(_ tag: UInt32, isUnprocessed: Bool, at now: UInt64) {
        guard let item = items[Int(tag)] else { return }
        guard isUnprocessed else {
            return repeatOrEnd(tag, .later(milliseconds: 5_000), "no answer")
        }
        items[Int(tag)]?.refusedStreams += 1
        switch item.refusedStreams {
        case 0: waitAgain(tag)
        case 1...Self.mostTries:
            guard !item.isWithdrawn else { return waitAgain(tag) }
            leave(item)
            repeated += 1
            items[Int(tag)]?.state = .resting(
                until: now + 500 << UInt64(item.refusedStreams))
            lanes[item.lane].restingCount += 1
            resting.append((tag, item.serial))
        default: end(tag, .later(milliseconds: 5_000), "the service refuses its stream")
        }
    }

    /// A connection has ended with these notifications on it. `wasUseful` is false for one that never
    /// gave an answer: then nothing reached the service, and it is no attempt.
    mutating func connectionLost(_ connection: Int, wasUseful: Bool, _ reason: String) {
        for tag in items.indices {
            guard case .onStream(connection, _, _)? = items[tag]?.state else { continue }
            repeatOrEnd(
                UInt32(tag), wasUseful ? .later(milliseconds: 5_000) : .givenBack, reason)
        }
    }

    /// Notifications that have had no answer for too long, with their connections.
    func overdue(at now: UInt64) -> [(tag: UInt32, connection: Int)] {
        var list: [(tag: UInt32, connection: Int)] = []
        for tag in items.indices {
            if case .onStream(let connection, let since, _)? = items[tag]?.state,
                now >= since + Self.answerTime
            {
                list.append((UInt32(tag), connection))
            }
        }
        return list
    }

    /// Wakes those that rest, and gives back what has waited for too long.
    mutating func checkTimes(at now: UInt64) {
        let list = resting
        resting.removeAll(keepingCapacity: true)
        for (tag, serial) in list {
            guard items[Int(tag)]?.serial == serial,
                case .resting(let until)? = items[Int(tag)]?.state
            else { continue }
            if until > now {
                resting.append((tag, serial))
            } else if let item = items[Int(tag)] {
                leave(item)
                items[Int(tag)]?.state = .waiting
                self.list(tag, serial, in: item.lane)
            }
        }
        for tag in items.indices {
            guard case .waiting? = items[tag]?.state, let since = items[tag]?.since,
                now >= since + Self.longestWait
            else { continue }
            end(UInt32(tag), .givenBack, "it has waited too long for the service")
        }
    }
}
