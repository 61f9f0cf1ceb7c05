import BrokerCore
import Store
import Structures

/// Hands the facts of a start to the features that keep them.
extension Shard: StoreVisitor {
    public mutating func visit(_ fact: StoredFact) -> Bool {
        noteNumber(of: fact)
        do throws(DamagedFact) {
            try restore(fact)
            return true
        } catch {
            return false
        }
    }

    /// Keeps the number of a fact from being given again, whether or not the fact can be read: what
    /// is left of a lost message must not become part of a new one.
    private mutating func noteNumber(of fact: StoredFact) {
        var key = FactReader(fact.key)
        guard let number = try? key.number() else { return }
        switch fact.table {
        case FactTable.receipt.number: features.receipts.noteStored(number)
        case FactTable.scheduled.number: features.scheduled.noteStored(number)
        case FactTable.push.number: features.pushes.noteStored(number)
        default: return
        }
    }

    private mutating func restore(_ fact: StoredFact) throws(DamagedFact) {
        switch fact.table {
        case FactTable.sequence.number:
            let (channel, number) = try sequence(in: fact)
            features.requests.restore(channel: channel, number: number)
        case FactTable.publishKey.number: features.publishKeys.restore(try PublishKey(fact))
        case FactTable.receiptBounds.number: features.receipts.restore(try ReceiptProgress(fact))
        case FactTable.receipt.number:
            switch try ReceiptFact(fact) {
            case .receipt(let receipt): features.receipts.restore(receipt, pool: pool)
            case .end(let end):
                features.receipts.events.noteStored(end.event)
                features.restoring.receiverEnd = end
            case .receiver(let receiver):
                let end = features.restoring.receiverEnd.take()
                restoreReceiver(receiver, receiver.end(end))
            }
        case FactTable.scheduled.number:
            switch try ScheduledFact(fact) {
            case .moved(let number, let dueMs): features.restoring.scheduledMoved = (number, dueMs)
            case .message(var stored):
                if let moved = features.restoring.scheduledMoved, moved.number == stored.number {
                    stored.dueMs = moved.dueMs
                }
                guard StoredQoS(byte: stored.qos) != nil, TopicText.isName(stored.topic) else {
                    throw DamagedFact()
                }
                features.scheduled.insert(stored, pool: pool)
            }
        case FactTable.collapsible.number:
            restoreCollapsible(try StoredCollapsible(fact), of: fact.owner)
        case FactTable.tag.number:
            let tag = try StoredTag(fact)
            let isKept = tag.clientID.withUnsafeBytes { client in
                tag.tag.withUnsafeBytes { features.tagged.add($0, to: client, pool: pool) }
            }
            guard isKept else { throw DamagedFact() }
        case FactTable.push.number:
            guard let push = try features.restoring.push.add(fact) else { return }
            guard restorePush(push) else { throw DamagedFact() }
        case FactTable.device.number:
            guard restoreDevice(try StoredDevice(fact)) else { throw DamagedFact() }
        case FactTable.woken.number:
            let (client, woken) = try StoredDevice.Woken.read(fact)
            if let device = client.withUnsafeBytes({ features.devices.find($0) }) {
                features.devices[device].woken = woken
            }
        default: throw DamagedFact()
        }
    }
}

/// Facts of a start that wait for the one after them, to which they belong.
struct RestoringFacts {
    var receiverEnd: ReceiverEnd?
    var scheduledMoved: (number: UInt64, dueMs: Int64)?
    var push = PushParts()
}
