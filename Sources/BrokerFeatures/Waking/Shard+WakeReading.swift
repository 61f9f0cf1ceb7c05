import BrokerAPI
import BrokerCore
import MQTTCore
import Store
import Structures

/// Which messages of a queue ask for a wake, when memory does not know that: after a start, after the
/// registration of a device, and when one that was counted has expired.
///
/// A queue does not say when its messages came. So none of them counts as dropped for the quiet hours
/// that last now: it may have come by day.
extension Shard {
    /// Notes that a message has expired which a wake may count or name: it is made anew of what waits
    /// when it is due.
    mutating func noteExpired(_ session: UInt32, _ position: UInt64) {
        var next = firstDevice(for: session)
        while let device = next {
            next = nextDevice(after: device, for: session)
            noteExpired(device, session, position)
        }
    }

    private mutating func noteExpired(_ device: UInt32, _ session: UInt32, _ position: UInt64) {
        guard features.devices[device].owed != noIndex else { return }
        let wake = features.devices[device].owed
        guard features.wakes[wake].state != .reading, features.wakes[wake].purpose == .messages,
            position < features.wakes[wake].target, position >= cursor(of: device, session)
        else { return }
        features.wakes[wake].needsReading = true
    }

    /// Counts anew which messages of a queue ask for a wake: reads it, or looks through it in memory.
    mutating func beginReading(_ wake: UInt32, of session: UInt32) {
        let device = features.wakes[wake].device
        features.wakes[wake].next = cursor(of: device, session)
        features.wakes[wake].count = 0
        guard commits.isDurable, sessions[session].isPersistent else {
            lookThrough(session, wake)
            return
        }
        readForWake(wake, of: session)
    }

    private mutating func lookThrough(_ session: UInt32, _ wake: UInt32) {
        let (first, target) = (features.wakes[wake].next, features.wakes[wake].target)
        let device = features.wakes[wake].device
        let now = context.wallClockMs
        let queue = sessions[session].outbound
        queue.forEachListed(from: first) { listed in
            guard listed.position < target else { return false }
            if let message = listed.message, listed.qos != .atMostOnce,
                !message.isExpired(atMs: now)
            {
                let choice = features.wakeRules.choice(for: message.topic, message.wakeRequest)
                if let kind = choice.kind, features.devices.takes(kind, device),
                    !isSkipped(kind, of: wake)
                {
                    ask(
                        wake, message.topic, message.payload, choice, kind,
                        key(ofCollapsible: listed.position, sessions[session].number),
                        message.expiresAtMs)
                }
            }
            return true
        }
        endReading(wake, of: session, below: target)
    }

    /// The collapse key of a queue position; `nil` without one.
    private func key(ofCollapsible position: UInt64, _ number: UInt64) -> UInt128? {
        features.collapse.find(session: number, position: position).map {
            features.collapse.entries[$0].key
        }
    }

    private mutating func endReading(_ wake: UInt32, of session: UInt32, below position: UInt64) {
        features.wakes[wake].needsReading = false
        features.wakes[wake].skipsCalls = false
        if features.wakes[wake].count == 0 {
            // None asks: it is not read again after the next start.
            let device = features.wakes[wake].device
            setWoken(device, session, below: position)
            endWake(of: device)
        } else {
            makeReady(wake)
        }
    }

    /// Reads the next part of the queue of a client, to see which of its messages ask for a wake.
    mutating func readForWake(_ wake: UInt32, of session: UInt32) {
        features.wakes.beginReading(wake)
        let device = features.devices.handle(of: features.wakes[wake].device)
        commits.read(
            QueueRead(
                session: sessions[session].number, from: features.wakes[wake].next,
                below: features.wakes[wake].target, maxMessages: 256, maxBytes: QueueWindow.bytes,
                tag: FeatureRead.wake(device).tag.encoded, ticket: 0))
    }

    /// Takes a part of a queue that was read for a wake.
    mutating func takeWakeSlice(_ slice: QueueSlice, _ handle: Handle) {
        guard features.devices.isCurrent(handle), features.devices[handle.index].owed != noIndex
        else { return }
        let wake = features.devices[handle.index].owed
        guard features.wakes[wake].state == .reading else { return }
        guard let session = session(for: handle.index) else { return endWake(of: handle.index) }
        if slice.failure != nil {
            wait(wake, until: context.now.advanced(byMilliseconds: 60_000))
            return
        }
        // Later messages have named the wake meanwhile.
        let isNamed = features.wakes[wake].target > slice.request.below
        slice.forEach { item in
            guard !item.isReleased, item.qos > 0,
                item.expiresAtMs == 0 || item.expiresAtMs > context.wallClockMs
            else { return }
            let published = StoredQoS(byte: item.publishedQoS)
            let request = published?.wake ?? .byRules
            let choice = features.wakeRules.choice(for: item.topic, request)
            guard let kind = choice.kind, features.devices.takes(kind, handle.index),
                !isSkipped(kind, of: wake)
            else { return }
            // How old it is, the queue does not say.
            if kind.isCall, features.wakes[wake].called == 0 { noteCall(wake) }
            if isNamed {
                note(wake, item.expiresAtMs)
            } else {
                let key = key(ofCollapsible: item.position, slice.request.session)
                let payload = StoredContent(item.payload, published).payload
                ask(wake, item.topic, payload, choice, kind, key, item.expiresAtMs)
            }
        }
        features.wakes[wake].next = slice.next
        guard slice.next >= slice.request.below else {
            readForWake(wake, of: session)
            return
        }
        endReading(wake, of: session, below: slice.request.below)
    }
}
