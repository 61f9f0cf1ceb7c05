import BrokerAPI
import BrokerCore
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Commands about pushes.
extension Shard {
    /// Begins or schedules a push; `reply` is called when that is stored. A repeat begins nothing.
    public mutating func push(_ request: PushRequest, reply: @escaping Reply<PublishOutcome>) {
        guard !answersRepeat(of: request.publication, reply) else { return }
        guard !request.publication.isOnlyRepeated else {
            reply(.success(.notRepeated))
            return
        }
        let (outcome, isStored) = addPush(request)
        if case .refused(let reason) = outcome {
            reply(.failure(reason))
        } else if isStored {
            commit(outcome, reply)
        } else {
            reply(.success(outcome))
        }
    }

    private mutating func addPush(
        _ request: PushRequest
    ) -> (outcome: PublishOutcome, isStored: Bool) {
        let publication = request.publication
        guard publication.receiptID.isEmpty || context.limits.receipts > 0 else {
            return (.receiptsAreOff, false)
        }
        guard !commits.holdsMessages else { return (.refused(.storeRefuses), false) }
        let name = OwnedName(request.pushID, of: publication.owner)
        if let former = features.pushes.find(name), !former.isEnded {
            return (.alreadyScheduled, false)
        }
        let now = context.wallClockMs
        let stored = StoredPush(
            number: features.pushes.newNumber(), createdMs: now, dueMs: request.deliverAtMs ?? now,
            expiresInMs: request.expiresInMs, spreadMs: request.spreadMs,
            pushID: request.pushID, owner: name.owner, topic: publication.topic,
            payload: publication.storedPayload, qos: publication.storedQoS,
            isFollowed: !publication.receiptID.isEmpty,
            target: request.encodedTarget, seed: request.pushID.withUnsafeBytes { hash($0) } >> 1)
        let push = Pushes.Push(stored: stored, target: request.target)
        guard
            SharedLimit.admits(
                1, own: features.pushes.counts.taken(by: name.owner),
                total: features.pushes.openCount, limit: context.limits.pushes),
            hasScheduledBytes(push.bytes, of: name.owner), makeRoomForPush()
        else { return (.tooManyScheduled, false) }
        commits.records.push(stored)
        features.pushes.add(push)
        keepKey(of: publication, PublishCounts())
        return (.scheduled(deliverAtMs: stored.dueMs), true)
    }

    /// Drops the push that ended first if there are as many as there may be; false when none has.
    private mutating func makeRoomForPush() -> Bool {
        while features.pushes.count >= context.limits.pushes {
            guard removeEndedPush(forRoom: true) else { return false }
        }
        return true
    }

    /// Drops the push that ended first, for room or because that is long ago; false without one.
    mutating func removeEndedPush(forRoom: Bool) -> Bool {
        guard
            let progress = features.pushes.removeFirstEnded(
                at: context.wallClockMs, forRoom: forRoom)
        else { return false }
        commits.records.pushRemoved(progress.number, of: progress.owner)
        return true
    }

    /// Answers whom a push would reach now, in slices of the coming turns.
    public mutating func previewPush(_ target: PushTarget, reply: @escaping Reply<PushPreview>) {
        features.pushes.previews.append(Pushes.Preview(target: target, reply: reply))
        features.pushes.wake()
    }

    /// A push; `nil` without one.
    public func pushStatus(_ name: OwnedName) -> PushStatus? {
        features.pushes.findAny(name).map { status(of: $0) }
    }

    /// A page of pushes, the youngest first.
    public func pushList(below number: UInt64?, limit: Int) -> PushPage {
        let (listed, next) = features.pushes.list(below: number, most: limit)
        var page = PushPage(next: next.map { "\($0)" })
        for push in listed { page.pushes.append(status(of: push)) }
        return page
    }

    /// Cancels what has not left of a push, and answers once that is stored; `nil` without one.
    public mutating func cancelPush(_ name: OwnedName, reply: @escaping Reply<PushStatus?>) {
        guard let found = features.pushes.findAny(name) else {
            reply(.success(nil))
            return
        }
        guard !found.isEnded, var push = features.pushes.take(found.stored.number) else {
            reply(.success(status(of: found)))
            return
        }
        features.pushes.end(&push, .cancelled, at: context.wallClockMs)
        commits.records.pushProgress(push.stored.progress)
        features.pushes.putBack(push)
        commit(status(of: push), reply)
    }

    private func status(of push: Pushes.Push) -> PushStatus {
        let (stored, progress) = (push.stored, push.stored.progress)
        let state: PushStatus.State =
            switch push.state {
            case .scheduled: .scheduled
            case .sending: .sending
            case .done: .done
            case .cancelled: .cancelled
            case .expired: .expired
            }
        let isDetermined =
            progress.reached > 0 || progress.matched > 0 || progress.endedMs != 0
        return PushStatus(
            pushID: String(decoding: stored.pushID, as: UTF8.self),
            topic: String(decoding: stored.topic, as: UTF8.self), qos: Int(stored.qos),
            state: state, createdAtMs: stored.createdMs, deliverAtMs: stored.dueMs,
            spreadSeconds: stored.spreadMs / 1_000,
            endedAtMs: progress.endedMs == 0 ? nil : progress.endedMs,
            matched: isDetermined ? Int(progress.matched) : nil,
            reached: Int(progress.reached), online: Int(progress.online),
            queued: Int(progress.queued), dropped: Int(progress.dropped),
            withoutSession: Int(progress.withoutSession), denied: Int(progress.denied),
            receipts: receipt(of: push).map { features.receipts.records[$0].counts.counts })
    }

    /// The place of the receipt that follows a push; `nil` without one.
    func receipt(of push: Pushes.Push) -> UInt32? {
        guard push.stored.isFollowed, push.stored.progress.beganMs != 0,
            let place = features.receipts.find(push.name),
            push.stored.topic.withUnsafeBytes({ features.receipts.records[place].topic.equals($0) })
        else { return nil }
        return place
    }

    // MARK: Restoring

    /// Restores a push; false for one that cannot be read, which only damage makes.
    mutating func restorePush(_ stored: StoredPush) -> Bool {
        let isEnded = stored.progress.endedMs != 0
        guard StoredQoS(byte: stored.qos) != nil, TopicText.isName(stored.topic),
            let target = isEnded ? .clients([]) : PushTarget(encoded: stored.target)
        else { return false }
        var push = Pushes.Push(stored: stored, target: target)
        if push.state == .sending { push.beginWalk() }
        features.pushes.add(push)
        return true
    }
}

extension StartPush: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<PublishOutcome>) {
        shard.push(request, reply: reply)
    }
}

extension PreviewPush: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<PushPreview>) {
        shard.previewPush(target, reply: reply)
    }
}

extension ShowPush: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<PushStatus?>) {
        reply(.success(shard.pushStatus(name)))
    }
}

extension ListPushes: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<PushPage>) {
        reply(.success(shard.pushList(below: below, limit: limit)))
    }
}

extension CancelPush: ShardQuestion {
    func ask(_ shard: inout Shard, reply: @escaping Reply<PushStatus?>) {
        shard.cancelPush(name, reply: reply)
    }
}
