import BrokerAPI
import BrokerCore
import Structures

/// What happened lately to each client identifier, also to those without a session: the last
/// ``mostEvents`` of each. Beyond its bytes the client goes that nothing has happened to for longest.
/// Clients that never got in share an eighth of the bytes, so that invented ones displace no others.
///
/// The loop owns it, because it knows the addresses.
public struct ClientHistories: ~Copyable {
    struct Record: BitwiseCopyable {
        let identifier: CompactBytes
        /// The newest event, which names the one before.
        var newest = noIndex
        var count: UInt8 = 0
        /// True once anything but a refusal has happened to it.
        var hasSession = false
        /// Bytes of the events.
        var eventBytes: UInt32 = 0
        var links = ListLinks()
        /// Its newest trouble; ``noIndex`` before the first.
        var trouble = noIndex

        /// All that the record counts, with its place in the index.
        var bytes: Int {
            MemoryLayout<Self>.stride + 16 + identifier.count + Int(eventBytes)
                + (trouble == noIndex ? 0 : ClientTroubles.recordBytes)
        }
    }

    private enum ByAge: ListField {
        static subscript(record: UnsafeMutablePointer<Record>) -> ListLinks {
            get { record.pointee.links }
            set { record.pointee.links = newValue }
        }
    }

    /// Events of one client.
    static let mostEvents: UInt8 = 8
    /// Ends of connections within a minute from which on a client flaps; eight events hold four.
    private static let flappingEnds = 4
    static let flappingMs: Int64 = 60_000
    /// Clients that a search for troubles looks at, so that it delays nobody.
    private static let mostTroubleSteps = 4_096

    private let hash: KeyedHash
    private let pool: BytePool
    private var records = Slab<Record>()
    private var events = Slab<Event>()
    private var byIdentifier = HashIndex()
    /// The longest unchanged first, of clients that have got in and of the others.
    private var known = IntrusiveList<ByAge>()
    private var strangers = IntrusiveList<ByAge>()
    private var troubles: ClientTroubles
    private var knownBytes = 0
    private var strangerBytes = 0

    public init(hash: KeyedHash, pool: BytePool) {
        self.hash = hash
        self.pool = pool
        troubles = ClientTroubles(pool: pool)
    }

    // MARK: Changes

    /// Notes what happened to a client at a UNIX time in milliseconds, within so many bytes of all
    /// histories together; 0 keeps none.
    public mutating func note(
        _ happening: Happening, to client: [UInt8], atMs now: Int64, limit: Int
    ) {
        guard limit > 0 else { return }
        let place = client.withUnsafeBytes { find($0) ?? insert($0) }
        unlist(place)
        if happening.kind != .refused { records[place].hasSession = true }
        if !repeats(happening, at: place, now) { append(happening, to: place, now) }
        noteTrouble(happening, at: place, now)
        list(place)
        trim(to: limit)
    }

    /// Notes what is a trouble by itself, or that the client comes and goes again and again.
    private mutating func noteTrouble(_ happening: Happening, at place: UInt32, _ now: Int64) {
        var trouble = (kind: happening.kind, count: happening.count, firstMs: now)
        if !ClientEvent.isTrouble(happening.kind, reason: happening.reason) {
            guard happening.kind == .disconnected,
                let flapping = flapping(of: place, now)
            else { return }
            trouble = (.flapping, flapping.count, flapping.firstMs)
        }
        records[place].trouble = troubles.note(
            trouble.kind, happening.reason, count: trouble.count, of: place,
            former: records[place].trouble, firstMs: trouble.firstMs, at: now)
    }

    /// How often a client has come and gone within a minute, and since when, if that is too often; if
    /// that is known already, one time more.
    private func flapping(of place: UInt32, _ now: Int64) -> (count: UInt64, firstMs: Int64)? {
        var (ends, firstMs) = (0, now)
        var event = records[place].newest
        while event != noIndex, events[event].firstMs > now - Self.flappingMs {
            if events[event].kind == Event.number(of: .disconnected) {
                ends += 1
                firstMs = events[event].firstMs
            }
            event = events[event].older
        }
        guard ends >= Self.flappingEnds else { return nil }
        let known = records[place].trouble
        let isKnown =
            known != noIndex && troubles[known].kind == .flapping
            && troubles[known].lastMs > now - Self.flappingMs
        return (isKnown ? 1 : UInt64(ends), firstMs)
    }

    /// Forgets what happened longest ago until all takes no more than `limit` bytes.
    public mutating func trim(to limit: Int) {
        while strangerBytes > limit / 8 { forget(strangers.first) }
        while knownBytes + strangerBytes > limit { forget(known.first) }
    }

    private mutating func list(_ place: UInt32) {
        if records[place].hasSession {
            known.append(place, in: records)
            knownBytes += records[place].bytes
        } else {
            strangers.append(place, in: records)
            strangerBytes += records[place].bytes
        }
    }

    private mutating func unlist(_ place: UInt32) {
        if records[place].hasSession {
            known.remove(place, in: records)
            knownBytes -= records[place].bytes
        } else {
            strangers.remove(place, in: records)
            strangerBytes -= records[place].bytes
        }
    }

    public var bytes: Int { knownBytes + strangerBytes }

    /// Counts it as a repetition of the client's last event, which then tells of this one; false
    /// when it is none.
    private mutating func repeats(
        _ happening: Happening, at place: UInt32, _ now: Int64
    ) -> Bool {
        let newest = records[place].newest
        guard newest != noIndex, happening.kind != .connected, happening.kind != .disconnected,
            events[newest].kind == Event.number(of: happening.kind),
            events[newest].hasReason(happening.reason)
        else { return false }
        events[newest].count = UInt32(
            clamping: UInt64(events[newest].count) + happening.count)
        events[newest].lastMs = now
        records[place].eventBytes -= UInt32(events[newest].bytes)
        events[newest].setTexts(happening, pool: pool)
        records[place].eventBytes += UInt32(events[newest].bytes)
        return true
    }

    private mutating func append(_ happening: Happening, to place: UInt32, _ now: Int64) {
        let (newer, older) = neighbours(of: happening.kind, at: place, now)
        let event = events.insert(Event(happening, older: older, atMs: now, pool: pool))
        if newer == noIndex { records[place].newest = event } else { events[newer].older = event }
        records[place].count += 1
        records[place].eventBytes += UInt32(events[event].bytes)
        if records[place].count > Self.mostEvents { dropOldest(of: place) }
    }

    /// The events between which a new one belongs; ``noIndex`` for none. The begin of a connection may
    /// be noted after what has happened during it, at its end.
    private func neighbours(
        of kind: ClientEvent.Kind, at place: UInt32, _ now: Int64
    ) -> (newer: UInt32, older: UInt32) {
        var (newer, older) = (noIndex, records[place].newest)
        guard kind == .connected else { return (newer, older) }
        while older != noIndex, events[older].firstMs > now {
            (newer, older) = (older, events[older].older)
        }
        return (newer, older)
    }

    private mutating func dropOldest(of place: UInt32) {
        var last = records[place].newest
        while events[last].older != noIndex, events[events[last].older].older != noIndex {
            last = events[last].older
        }
        let oldest = events[last].older
        events[last].older = noIndex
        records[place].count -= 1
        records[place].eventBytes -= UInt32(events[oldest].bytes)
        remove(oldest)
    }

    private mutating func remove(_ event: UInt32) {
        events[event].destroy(in: pool)
        events.remove(event)
    }

    private mutating func insert(_ client: UnsafeRawBufferPointer) -> UInt32 {
        let place = records.insert(Record(identifier: CompactBytes(client, pool: pool)))
        byIdentifier.insert(hash(client), place)
        list(place)
        return place
    }

    private mutating func forget(_ place: UInt32) {
        unlist(place)
        if records[place].trouble != noIndex { troubles.remove(records[place].trouble) }
        let record = records[place]
        var event = record.newest
        while event != noIndex {
            let older = events[event].older
            remove(event)
            event = older
        }
        byIdentifier.remove(record.identifier.withBytes { hash($0) }, place)
        record.identifier.destroy(in: pool)
        records.remove(place)
    }

    // MARK: Answers

    /// True when anything is noted of a client.
    public func holds(_ client: [UInt8]) -> Bool { client.withUnsafeBytes { find($0) } != nil }

    private func find(_ client: UnsafeRawBufferPointer) -> UInt32? {
        byIdentifier.find(hash(client)) { records[$0].identifier.equals(client) }
    }

    /// What happened to a client, the newest first; nothing for an unknown one. `address` gives the
    /// text of an address in the caller's form.
    public func history(
        of clientID: String, address: (ArraySlice<UInt8>) -> String
    ) -> ClientHistory {
        let place = Array(clientID.utf8).withUnsafeBytes { find($0) }
        guard let place else { return ClientHistory(clientID: clientID, events: []) }
        var found: [ClientEvent] = []
        var event = records[place].newest
        while event != noIndex {
            found.append(events[event].told(address))
            event = events[event].older
        }
        return ClientHistory(clientID: clientID, events: found)
    }

    /// Clients in trouble, the newest trouble first, of one kind or of all. A client whose trouble
    /// later events have displaced is left out.
    public func troubles(
        _ kind: ClientEvent.Kind?, limit: Int, address: (ArraySlice<UInt8>) -> String
    ) -> [ClientTrouble] {
        var found: [(trouble: UInt32, event: UInt32)] = []
        var (trouble, steps) = (troubles.newest, Self.mostTroubleSteps)
        // A client's newest trouble of one kind may be older than those of clients behind it.
        while trouble != noIndex, steps > 0, kind != nil || found.count < limit {
            steps -= 1
            if let event = event(of: trouble, kind) { found.append((trouble, event)) }
            trouble = troubles.older(than: trouble)
        }
        if kind != nil { found.sort { events[$0.event].lastMs > events[$1.event].lastMs } }
        return found.prefix(limit).map { trouble, event in
            ClientTrouble(
                clientID: String(
                    decoding: records[troubles[trouble].client].identifier.array, as: UTF8.self),
                event: describe(troubles[trouble], event, kind, address))
        }
    }

    /// The event that tells of a client's trouble of a kind, or of any: the end of its last connection
    /// when it comes and goes too often.
    private func event(of trouble: UInt32, _ kind: ClientEvent.Kind?) -> UInt32? {
        let trouble = troubles[trouble]
        guard trouble.kind == .flapping, kind == nil || kind == .flapping else {
            return newestTrouble(of: trouble.client, kind)
        }
        var event = records[trouble.client].newest
        while event != noIndex, events[event].kind != Event.number(of: .disconnected) {
            event = events[event].older
        }
        return event == noIndex ? nil : event
    }

    /// A trouble with the event that tells of it; its number counts repetitions that are not in a row.
    private func describe(
        _ trouble: ClientTroubles.Record, _ event: UInt32, _ kind: ClientEvent.Kind?,
        _ address: (ArraySlice<UInt8>) -> String
    ) -> ClientEvent {
        var told = events[event].told(address)
        if trouble.kind == .flapping, kind != .disconnected { told.kind = .flapping }
        guard told.kind == trouble.kind, trouble.lastMs == told.lastMs else { return told }
        told.count = max(told.count, UInt64(trouble.count))
        told.firstMs = min(told.firstMs, trouble.firstMs)
        return told
    }

    private func newestTrouble(of place: UInt32, _ kind: ClientEvent.Kind?) -> UInt32? {
        var event = records[place].newest
        while event != noIndex {
            let its = events[event].kindOfEvent
            if kind == nil || kind == its, isTrouble(event, its) { return event }
            event = events[event].older
        }
        return nil
    }

    /// Only the ends of connections need a look at their reasons.
    private func isTrouble(_ event: UInt32, _ kind: ClientEvent.Kind) -> Bool {
        let reason =
            kind == .disconnected
            ? String(decoding: events[event].reason.array, as: UTF8.self) : ""
        return ClientEvent.isTrouble(kind, reason: reason)
    }
}
