import BrokerAPI
import BrokerCore
import MQTTCodec
import MQTTCore
import Store
import Structures

/// Messages of the admin plane.
extension Shard {
    /// Publishes for the admin plane; `reply` is called when the message is stored. A repeat is
    /// answered when all messages with keys are, and publishes nothing.
    public mutating func publish(
        _ publication: Publication, reply: @escaping Reply<PublishOutcome>
    ) {
        guard !answersRepeat(of: publication, reply) else { return }
        guard !publication.isOnlyRepeated else {
            reply(.success(.notRepeated))
            return
        }
        // One that very many filters match is made in slices, like a group.
        guard
            publication.isKept
                || publication.topic.withUnsafeBytes({
                    receivers(of: $0, most: WorkBudget.mostMatchSteps, isCounted: false) != nil
                })
        else {
            publishGroup([publication]) { answer in
                switch answer.map(\.first) {
                case .success(.refused(let reason)), .failure(let reason): reply(.failure(reason))
                case .success(let outcome?): reply(.success(outcome))
                case .success(nil): reply(.failure(.stopping))
                }
            }
            return
        }
        let (outcome, needsCommit) = accept(publication)
        if case .refused(let reason) = outcome {
            reply(.failure(reason))
        } else if needsCommit {
            commit(outcome, reply)
        } else {
            reply(.success(outcome))
        }
    }

    /// Routes or schedules a message of the admin plane that is no repeat. With `needsCommit` the caller ends the
    /// group of records before it writes anything but further messages, and tells the outcome when it
    /// is stored.
    mutating func accept(
        _ publication: Publication
    ) -> (outcome: PublishOutcome, needsCommit: Bool) {
        guard let time = publication.schedule else {
            return publishNow(publication, mustCommit: false)
        }
        return time.number.map { fire($0, publication, time) } ?? schedule(publication, time)
    }

    /// Routes a message; with `mustCommit` its group of records has others too.
    mutating func publishNow(
        _ publication: Publication, mustCommit: Bool
    ) -> (outcome: PublishOutcome, needsCommit: Bool) {
        context.counters.publishReceived(
            publication.qos, payloadBytes: publication.payload.count)
        let isFollowed = !publication.receiptID.isEmpty
        guard !isFollowed || context.limits.receipts > 0 else { return (.receiptsAreOff, false) }
        let mustCommit =
            mustCommit || publication.sequence != nil || keepsKey(of: publication)
            || isFollowed
        let mustStore =
            mustCommit
            || publication.topic.withUnsafeBytes {
                needsStore(
                    topic: $0, qos: publication.qos, retain: publication.retain,
                    holdsIdentifier: false)
            }
        guard !commits.holdsMessages || !mustStore else {
            return (.refused(.storeRefuses), false)
        }
        if context.topicTraces.isActive {
            publication.topic.withUnsafeBytes { topic in
                publication.payload.withUnsafeBytes { payload in
                    tracePublish(
                        topic, payload, qos: publication.qos, retain: publication.retain, from: nil)
                }
            }
        }
        let superseded = replaceQueued(by: publication)
        var suffix: [UInt8] = []
        var sequences = superseded ?? []
        if let stamp = publication.sequence {
            let number = features.requests.nextNumber(inChannel: stamp.channel)
            suffix = Self.varintField(stamp.tag, number)
            for former in sequences { suffix += Self.varintField(stamp.supersededTag, former) }
            sequences.append(number)
            stamp.channel.withUnsafeBytes {
                commits.records.sequence(channel: $0, number: number)
            }
        }
        let message = publication.topic.withUnsafeBytes { topic in
            publication.payload.withUnsafeBytes { payload in
                suffix.withUnsafeBytes { suffix in
                    publication.messageID.withUnsafeBytes { messageID in
                        publication.properties.withUnsafeBytes { properties in
                            Message(
                                topic: topic, payload: payload, suffix: suffix,
                                qos: publication.qos, retain: publication.retain,
                                wake: publication.wake.rawValue,
                                expiresAtMs: publication.expiresAtMs ?? 0,
                                arrivedMs: context.now.arrivalStamp, messageID: messageID,
                                forwarded: ForwardedProperties(whole: properties),
                                forwardedSource: properties, pool: pool)
                        }
                    }
                }
            }
        }
        defer { message.release(in: pool) }
        let receipt = isFollowed ? addReceipt(of: publication) : noIndex
        if let key = publication.collapseKey { features.collapse.current = (key, sequences) }
        let (counts, needsCommit) = route(
            message, to: receivers(of: message.topic),
            mustCommit: mustCommit || superseded != nil, follower: receipt,
            mark: publication.collapseKey != nil ? CollapseIndex.mark : 0)
        keepKey(of: publication, counts)
        return (.published(counts), needsCommit)
    }

    /// Ends the group of records; `reply` gets the value when the group is stored.
    mutating func commit<Value: Sendable>(_ value: Value, _ reply: @escaping Reply<Value>) {
        commit(Awaited.reply(keep(value, reply)).action)
    }

    /// Keeps a value and its `reply` for a commit's action, which the returned number names.
    private mutating func keep<Value: Sendable>(
        _ value: Value, _ reply: @escaping Reply<Value>
    ) -> UInt64 {
        features.requests.awaitCommit { isCommitted in
            reply(isCommitted ? .success(value) : .failure(.stopping))
        }
    }

    /// A protobuf varint field: its tag byte, then seven bits a byte, least significant first.
    private static func varintField(_ tag: UInt8, _ number: UInt64) -> [UInt8] {
        var bytes = [tag]
        var rest = number
        while rest >= 128 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
        return bytes
    }

    // MARK: Keys

    // A key is in one group of records with its message, and a repeat is answered once that group is
    // stored. So a repeat publishes nothing, also after a crash.

    /// The answer to a message that is not to be published: a repeat, or one whose key cannot be
    /// kept. It is told when all keys are stored.
    func knownOutcome(of publication: Publication) -> PublishOutcome? {
        guard let identity = publication.identity else { return nil }
        guard context.limits.idempotencyKeys > 0 else {
            return identity.isExplicit ? .keysAreOff : nil
        }
        return features.publishKeys.answer(to: identity)
    }

    /// Answers a message that is not to be published, once all keys are stored; false for another.
    mutating func answersRepeat(
        of publication: Publication, _ reply: @escaping Reply<PublishOutcome>
    ) -> Bool {
        guard let known = knownOutcome(of: publication) else { return false }
        if commits.hasUncommittedKeys {
            commits.awaitKeys(Awaited.reply(keep(known, reply)).action)
        } else {
            reply(.success(known))
        }
        return true
    }

    /// True when a key is kept with the message, which therefore has to be stored.
    private func keepsKey(of publication: Publication) -> Bool {
        publication.identity != nil && context.limits.idempotencyKeys > 0
    }

    /// Keeps the key of a message with its answer, in the group of records that is being written.
    mutating func keepKey(of publication: Publication, _ counts: PublishCounts) {
        guard keepsKey(of: publication), let identity = publication.identity else { return }
        let key = features.publishKeys.add(
            identity, of: publication.owner, counts, limit: context.limits.idempotencyKeys,
            at: context.wallClockMs)
        commits.records.publishKey(key)
        commits.noteKey()
    }

    /// Drops keys that are too old or too many, a slice in a turn.
    mutating func dropPublishKeys() {
        let bucket = features.publishKeys.drop(
            limit: context.limits.idempotencyKeys, at: context.wallClockMs)
        if let bucket { commits.records.publishKeysDropped(bucket) }
    }
}
