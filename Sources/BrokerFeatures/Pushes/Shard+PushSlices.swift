import BrokerAPI
import BrokerCore
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Sends pushes in slices.
///
/// A client's delivery and the push's progress beyond it are in one group of records, and clients
/// come in an order that does not change. So each client gets a push once, also after a crash.
extension Shard {
    /// The wall clock may be set, so it is compared at least so often.
    private static var longestWaitMs: Int64 { 1_000 }
    /// Units of a client, beside those of the delivery: its session lies anywhere in memory, and so
    /// costs a hundred times as much as a receiver that is met in order.
    private static var lookUpUnits: Int { 96 }
    /// Units of a client that is counted, and not sent to.
    private static var previewUnits: Int { 16 }
    /// Units of a tagged client that a walk looks at.
    private static var walkUnits: Int { 2 }

    /// The time of the turn that has to send slices; `nil` without any.
    var pushesDue: MonotonicTime? {
        guard let due = features.pushes.nextMs else { return nil }
        let wait = commits.holdsMessages ? Self.longestWaitMs : due - context.wallClockMs
        return context.now.advanced(
            byMilliseconds: UInt64(min(max(wait, 0), Self.longestWaitMs)))
    }

    /// True when slices are to be sent in this turn.
    var arePushesDue: Bool {
        guard let due = features.pushes.nextMs else { return false }
        return due <= context.wallClockMs && !commits.holdsMessages
    }

    /// Sends slices for the turn's share.
    mutating func continuePushes() {
        guard arePushesDue else { return }
        context.budget.beginGroups()
        continuePreviews()
        for number in features.pushes.takeDue(at: context.wallClockMs) { beginPush(number) }
        while !context.budget.isShareSpent, !commits.holdsMessages,
            let number = features.pushes.nextReady(at: context.wallClockMs),
            var push = features.pushes.take(number)
        {
            continuePush(&push)
            features.pushes.putBack(push)
        }
        features.pushes.schedule(at: context.wallClockMs)
    }

    /// Begins a push whose time has come.
    private mutating func beginPush(_ number: UInt64) {
        guard var push = features.pushes.take(number) else { return }
        push.stored.progress.state = Pushes.State.sending.rawValue
        push.stored.progress.beganMs = context.wallClockMs
        push.beginWalk()
        commits.records.pushProgress(push.stored.progress)
        if push.stored.isFollowed, context.limits.receipts > 0 {
            var publication = Publication(topic: push.stored.topic, payload: [], qos: .atMostOnce)
            publication.receiptID = push.stored.pushID
            publication.owner = push.stored.owner
            _ = addReceipt(of: publication)
        }
        features.pushes.putBack(push)
    }

    private mutating func continuePush(_ push: inout Pushes.Push) {
        if push.expiresAtMs != 0, push.expiresAtMs <= context.wallClockMs {
            endPush(&push, .expired)
        } else if push.walk != nil {
            walk(&push)
        } else {
            sendSlice(&push)
        }
    }

    private mutating func endPush(_ push: inout Pushes.Push, _ state: Pushes.State) {
        features.pushes.end(&push, state, at: context.wallClockMs)
        commits.records.pushProgress(push.stored.progress)
    }

    // MARK: Finding the clients

    /// Goes on with the walk over tagged clients that finds those of a push.
    private mutating func walk(_ push: inout Pushes.Push) {
        guard let first = push.walk, case .tags(let expression) = push.target else { return }
        let matcher = features.tagged.matcher(of: expression)
        let (hash, cursor, most) = (
            push.hash, push.stored.progress.cursor, features.pushes.mostInOrder
        )
        let stop =
            first + UInt32(min(context.budget.matchSteps, Int(features.tagged.endIndex - first)))
        for place in first..<stop where features.tagged.matches(place, matcher) {
            let entry = ReceiverHeap.Entry(
                hash: features.tagged.clients[place].identifier.withBytes {
                    ReceiverHeap.hash($0, hash)
                },
                place: place)
            guard entry.hash >= cursor else { continue }
            push.found += 1
            push.order.insert(entry, from: cursor, most: most)
        }
        context.budget.spend(Self.walkUnits * Int(stop - first) + 1)
        guard stop == features.tagged.endIndex else {
            push.walk = stop
            return
        }
        push.endWalk(at: context.wallClockMs)
        if push.order.isEmpty { endPush(&push, .done) }
    }

    // MARK: Sending

    private mutating func sendSlice(_ push: inout Pushes.Push) {
        let message = push.message(at: context.now, pool: pool)
        defer { message.release(in: pool) }
        message.setReceivers(Int(push.stored.progress.matched))
        var delivery = RoutedMessage(message, ticket: commits.nextTicket)
        if let receipt = receipt(of: push), features.receipts.mayGrow(receipt) {
            delivery.follow(receipt)
        }
        let allowed = push.allowed(at: context.wallClockMs)
        connections.beginSource()
        connections.beginDelivery(to: Int(push.stored.progress.matched))
        let isComplete =
            switch push.target {
            case .clients(let clients): send(&push, &delivery, to: clients, allowed)
            case .tags(let expression):
                send(&push, &delivery, to: features.tagged.matcher(of: expression), allowed)
            }
        connections.endDelivery()
        push.slicedMs = context.wallClockMs
        if isComplete {
            features.pushes.end(&push, .done, at: context.wallClockMs)
        }
        commits.records.pushProgress(push.stored.progress)
        commit()
    }

    /// True when the list has come to its end.
    private mutating func send(
        _ push: inout Pushes.Push, _ delivery: inout RoutedMessage, to clients: [[UInt8]],
        _ allowed: UInt32
    ) -> Bool {
        while push.stored.progress.reached < allowed, !context.budget.isShareSpent,
            push.stored.progress.cursor < clients.count
        {
            clients[Int(push.stored.progress.cursor)].withUnsafeBytes {
                reach($0, &delivery, &push.stored.progress)
            }
            push.stored.progress.cursor += 1
        }
        return push.stored.progress.cursor >= clients.count
    }

    /// True when all clients have been reached. A client that has lost the tags is left out.
    private mutating func send(
        _ push: inout Pushes.Push, _ delivery: inout RoutedMessage,
        to matcher: TaggedClients.Matcher, _ allowed: UInt32
    ) -> Bool {
        let hash = push.hash
        while let entry = push.order.first {
            // The cursor stands behind all clients of a hash.
            let isSame = entry.hash < push.stored.progress.cursor
            guard
                isSame
                    || push.stored.progress.reached < allowed && !context.budget.isShareSpent
            else { return false }
            _ = push.order.popFirst()
            push.stored.progress.cursor = entry.hash + 1
            let identifier = features.tagged.clients[entry.place].identifier
            guard features.tagged.matches(entry.place, matcher),
                identifier.withBytes({ ReceiverHeap.hash($0, hash) }) == entry.hash
            else {
                push.stored.progress.matched -= 1
                context.budget.spend(Self.lookUpUnits)
                continue
            }
            identifier.withBytes { reach($0, &delivery, &push.stored.progress) }
        }
        guard push.order.bound < ReceiverHeap.end else { return true }
        push.stored.progress.cursor = max(push.stored.progress.cursor, push.order.bound)
        push.beginWalk()
        return false
    }

    /// Delivers a push's message to one client, in whichever state it is.
    private mutating func reach(
        _ identifier: UnsafeRawBufferPointer, _ delivery: inout RoutedMessage,
        _ progress: inout PushProgress
    ) {
        let message = delivery.message
        progress.reached += 1
        features.pushes.reached += 1
        context.budget.spend(
            Self.lookUpUnits
                + WorkBudget.delivery(bytes: message.copiedBytes, qos: message.qos))
        guard let session = sessions.find(identifier) else {
            progress.withoutSession += 1
            return
        }
        let verdict = rights.decide(.subscribe, message.topic, for: sessions[session])
        if rights.hasWork { chargeRights() }
        if let verdict, !verdict.isAllowed {
            progress.denied += 1
            rights.refuse(
                .withheld, sessions[session], message.topic, line: verdict.line, &context)
            return
        }
        var counts = PublishCounts()
        deliver(&delivery, to: session, qos: message.qos, &counts)
        if counts.dropped > 0 {
            progress.dropped += 1
        } else if counts.online > 0 {
            progress.online += 1
        } else {
            progress.queued += 1
        }
    }

    // MARK: Questions

    private mutating func continuePreviews() {
        while !context.budget.isShareSpent, var preview = features.pushes.previews.first {
            let isComplete: Bool
            switch preview.target {
            case .clients(let clients): isComplete = count(clients, &preview)
            case .tags(let expression): isComplete = count(expression, &preview)
            }
            if isComplete {
                features.pushes.previews.removeFirst()
                preview.reply(.success(preview.answer))
            } else {
                features.pushes.previews[0] = preview
            }
        }
    }

    private mutating func count(_ clients: [[UInt8]], _ preview: inout Pushes.Preview) -> Bool {
        while !context.budget.isShareSpent, preview.place < clients.count {
            clients[Int(preview.place)].withUnsafeBytes { count($0, &preview.answer) }
            preview.place += 1
        }
        return preview.place >= clients.count
    }

    private mutating func count(
        _ expression: TagExpression, _ preview: inout Pushes.Preview
    ) -> Bool {
        let matcher = features.tagged.matcher(of: expression)
        while !context.budget.isShareSpent, preview.place < features.tagged.endIndex {
            context.budget.spend(Self.walkUnits)
            if features.tagged.matches(preview.place, matcher) {
                let identifier = features.tagged.clients[preview.place].identifier
                identifier.withBytes { count($0, &preview.answer) }
            }
            preview.place += 1
        }
        return preview.place >= features.tagged.endIndex
    }

    private mutating func count(
        _ identifier: UnsafeRawBufferPointer, _ answer: inout PushPreview
    ) {
        context.budget.spend(Self.previewUnits)
        answer.matched += 1
        guard let session = sessions.find(identifier) else {
            answer.withoutSession += 1
            return
        }
        if sessions[session].connection == nil { answer.offline += 1 } else { answer.online += 1 }
    }
}

extension Pushes.Push {
    /// Begins to look for the clients behind the cursor; those of a list are known.
    mutating func beginWalk() {
        found = 0
        order = ReceiverHeap()
        switch target {
        case .clients(let clients):
            stored.progress.matched = UInt32(clamping: clients.count)
            pace = (fromMs: stored.progress.beganMs, reached: 0)
        case .tags: walk = 0
        }
    }

    /// Takes the clients that the walk has found, at a UNIX time in milliseconds.
    fileprivate mutating func endWalk(at now: Int64) {
        walk = nil
        stored.progress.matched = stored.progress.reached + found
        if pace == nil { pace = (fromMs: now, reached: stored.progress.reached) }
    }

    /// The message of its next slice, with one reference.
    fileprivate func message(at now: MonotonicTime, pool: BytePool) -> Message {
        let published = StoredQoS(byte: stored.qos)
        return stored.topic.withUnsafeBytes { topic in
            stored.payload.withUnsafeBytes { payload in
                stored.pushID.withUnsafeBytes { messageID in
                    let content = StoredContent(payload, published)
                    return Message(
                        topic: topic, payload: content.payload,
                        qos: published?.qos ?? .atMostOnce, retain: false,
                        wake: published?.wake.rawValue ?? 0, expiresAtMs: expiresAtMs,
                        arrivedMs: now.arrivalStamp,
                        messageID: messageID, forwarded: content.forwarded,
                        forwardedSource: content.properties, pool: pool)
                }
            }
        }
    }
}
