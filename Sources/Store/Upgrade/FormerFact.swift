/// A change of a fact, made from what a store of version 4 kept in a form of its own.
///
/// The encodings are those that the features had when version 5 began. They change no more, even if
/// a feature changes its own: that is then an upgrade from version 5.
enum FormerFact {
    case store(UInt8, FactOwner, key: [UInt8], value: [UInt8])
    case remove(UInt8, FactOwner, key: [UInt8])
    case removeRange(UInt8, from: [UInt8], below: [UInt8])

    enum Table {
        static let sequence: UInt8 = 1
        static let publishKey: UInt8 = 2
        static let receiptBounds: UInt8 = 3
        static let receipt: UInt8 = 4
        static let scheduled: UInt8 = 5
        static let collapsible: UInt8 = 6
        static let tag: UInt8 = 7
        static let push: UInt8 = 8
        static let device: UInt8 = 9
        static let woken: UInt8 = 10
    }

    static func bytes(_ body: (inout FactBytes) -> Void) -> [UInt8] {
        var bytes = FactBytes([])
        body(&bytes)
        return bytes.finish()
    }

    /// A key that begins with a number; `part` tells facts of one number apart.
    static func key(_ number: UInt64, part: UInt8? = nil) -> [UInt8] {
        bytes {
            $0.put(number)
            if let part { $0.put(part) }
        }
    }

    static func key(_ receipt: UInt64, _ place: UInt32, part: UInt8) -> [UInt8] {
        bytes {
            $0.put(receipt)
            $0.put(place)
            $0.put(part)
        }
    }

    // MARK: What a table or a record held

    static func sequence(_ channel: [UInt8], _ number: UInt64) -> FormerFact {
        .store(Table.sequence, FactOwner(channel), key: channel, value: key(number))
    }

    static func publishKey(
        _ key: UInt128, digest: UInt128, messageID: UInt128, bucket: UInt64, counts: [UInt32]
    ) -> FormerFact {
        .store(
            Table.publishKey, FactOwner(bytes { $0.put(key) }),
            key: bytes {
                $0.put(bucket)
                $0.put(key)
            },
            value: bytes {
                $0.put(digest)
                $0.put(messageID)
                for count in counts { $0.put(count) }
            })
    }

    static func receiptBounds(begin: UInt64, lastEvent: UInt64, taken: UInt64) -> FormerFact {
        .store(
            Table.receiptBounds, .broker, key: [],
            value: bytes {
                $0.put(begin)
                $0.put(lastEvent)
                $0.put(taken)
            })
    }

    static func receipt(
        _ number: UInt64, atMs: Int64, messageID: [UInt8], topic: [UInt8]
    ) -> FormerFact {
        .store(
            Table.receipt, FactOwner(messageID), key: key(number),
            value: bytes {
                $0.put(atMs)
                $0.putText(messageID)
                $0.putRest(topic)
            })
    }

    static func receiver(
        _ receipt: UInt64, _ owner: FactOwner, place: UInt32, session: UInt64, position: UInt64,
        client: [UInt8]
    ) -> FormerFact {
        .store(
            Table.receipt, owner, key: key(receipt, place, part: 1),
            value: bytes {
                $0.put(session)
                $0.put(position)
                $0.putRest(client)
            })
    }

    static func receiverEnd(
        _ receipt: UInt64, _ owner: FactOwner, place: UInt32, outcome: UInt8, reason: UInt8,
        atMs: Int64, event: UInt64
    ) -> FormerFact {
        .store(
            Table.receipt, owner, key: key(receipt, place, part: 0),
            value: bytes {
                $0.put(outcome)
                $0.put(reason)
                $0.put(atMs)
                $0.put(event)
            })
    }

    static func scheduled(
        _ number: UInt64, dueMs: Int64, expiresInMs: Int64, qos: UInt8, retain: Bool,
        isFollowed: Bool, messageID: [UInt8], topic: [UInt8], payload: [UInt8]
    ) -> FormerFact {
        .store(
            Table.scheduled, FactOwner(messageID), key: key(number, part: 1),
            value: bytes {
                $0.put(dueMs)
                $0.put(expiresInMs)
                $0.put(qos)
                $0.put(retain)
                $0.put(isFollowed)
                $0.putText(messageID)
                $0.putText(topic)
                $0.putRest(payload)
            })
    }

    static func collapsible(
        _ session: UInt64, _ owner: FactOwner, position: UInt64, key: UInt128, sequences: [UInt64]
    ) -> FormerFact {
        .store(
            Table.collapsible, owner, key: collapsibleKey(session, position),
            value: bytes {
                $0.put(key)
                for sequence in sequences { $0.put(sequence) }
            })
    }

    static func collapsibleKey(_ session: UInt64, _ position: UInt64) -> [UInt8] {
        bytes {
            $0.put(session)
            $0.put(position)
        }
    }

    static func tag(_ tag: [UInt8], of client: [UInt8], isSet: Bool) -> FormerFact {
        let key = bytes {
            $0.putText(client)
            $0.putRest(tag)
        }
        let owner = FactOwner(client)
        return isSet
            ? .store(Table.tag, owner, key: key, value: []) : .remove(Table.tag, owner, key: key)
    }

    /// The push, and its content: payload and clients, which an ended push has no more.
    static func push(
        _ number: UInt64, times: [Int64], seed: UInt64, qos: UInt8, isFollowed: Bool,
        pushID: [UInt8], topic: [UInt8], payload: [UInt8], target: [UInt8]
    ) -> [FormerFact] {
        let owner = FactOwner(pushID)
        let push = bytes {
            for time in times { $0.put(time) }
            $0.put(seed)
            $0.put(qos)
            $0.put(isFollowed)
            $0.putText(pushID)
            $0.putRest(topic)
        }
        let content = bytes {
            $0.putText(payload)
            $0.putRest(target)
        }
        return [
            .store(Table.push, owner, key: key(number, part: 0), value: content),
            .store(Table.push, owner, key: key(number, part: 2), value: push),
        ]
    }

    /// The progress of a push; its end removes the content.
    static func pushProgress(
        _ number: UInt64, _ owner: FactOwner, state: UInt8, cursor: UInt64, counts: [UInt32],
        beganMs: Int64, endedMs: Int64
    ) -> [FormerFact] {
        let progress = bytes {
            $0.put(state)
            $0.put(cursor)
            for count in counts { $0.put(count) }
            $0.put(beganMs)
            $0.put(endedMs)
        }
        let stored = FormerFact.store(
            Table.push, owner, key: key(number, part: 1), value: progress)
        return endedMs == 0
            ? [stored] : [stored, .remove(Table.push, owner, key: key(number, part: 0))]
    }

    static func device(
        _ client: [UInt8], userName: [UInt8]?, token: [UInt8], bundle: [UInt8], kind: UInt8,
        environment: UInt8, registeredMs: Int64, isSetAside: Bool
    ) -> FormerFact {
        .store(
            Table.device, FactOwner(client), key: client,
            value: bytes {
                $0.put(userName != nil)
                $0.putText(userName ?? [])
                $0.putText(token)
                $0.putText(bundle)
                $0.put(kind)
                $0.put(environment)
                $0.put(registeredMs)
                $0.put(isSetAside)
            })
    }

    static func woken(_ client: [UInt8], session: UInt64, position: UInt64) -> FormerFact {
        .store(
            Table.woken, FactOwner(client), key: client,
            value: collapsibleKey(session, position))
    }
}
