import BrokerAPI
import BrokerCore
import Structures

/// What happened lately to each client identifier, also to those without a session: the last
/// ``mostEvents`` of each. Beyond its bytes the client goes that nothing has happened to for longest.
/// Clients that never got in share an eighth of the bytes, so that invented ones displace no others.
///
/// The loop owns it, because it knows the addresses.
public struct ClientHistories: ~Copyable {
    struct Event: BitwiseCopyable {
        let firstMs: Int64
        var lastMs: Int64
        var count: UInt32
        /// The event before; ``noIndex`` without one.
        var older: UInt32
        let reason: CompactBytes
        /// Address, user name, topic and detail, one after the other.
        var texts = CompactBytes()
        var addressEnd: UInt16 = 0
        var userNameEnd: UInt16 = 0
        var topicEnd: UInt16 = 0
        let kind: UInt8

        var bytes: Int { MemoryLayout<Self>.stride + reason.count + texts.count }

        func destroy(in pool: BytePool) {
            reason.destroy(in: pool)
            texts.destroy(in: pool)
        }
    }

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
        var troubleLinks = ListLinks()
        /// True once a trouble has happened to it.
        var isTroubled = false

        /// All that the record counts, with its place in the index.
        var bytes: Int {
            MemoryLayout<Self>.stride + 16 + identifier.count + Int(eventBytes)
        }
    }

    private enum ByAge: ListField {
        static subscript(record: UnsafeMutablePointer<Record>) -> ListLinks {
            get { record.pointee.links }
            set { record.pointee.links = newValue }
        }
    }

    private enum ByTrouble: ListField {
        static subscript(record: UnsafeMutablePointer<Record>) -> ListLinks {
            get { record.pointee.troubleLinks }
            set { record.pointee.troubleLinks = newValue }
        }
    }

    /// Events of one client.
    static let mostEvents: UInt8 = 8
    /// Bytes of a user name, topic or detail; longer ones are cut.
    private static let mostText = 256

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
    /// The newest trouble first.
    private var troubled = IntrusiveList<ByTrouble>()
    private var knownBytes = 0
    private var strangerBytes = 0

    public init(hash: KeyedHash, pool: BytePool) {
        self.hash = hash
        self.pool = pool
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
        list(place)
        if ClientEvent.isTrouble(happening.kind, reason: happening.reason) {
            if records[place].isTroubled { troubled.remove(place, in: records) }
            records[place].isTroubled = true
            troubled.prepend(place, in: records)
        }
        trim(to: limit)
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
            events[newest].kind == Self.number(of: happening.kind),
            Self.withBytes(of: happening.reason, { events[newest].reason.equals($0) })
        else { return false }
        events[newest].count = UInt32(
            clamping: UInt64(events[newest].count) + happening.count)
        events[newest].lastMs = now
        records[place].eventBytes -= UInt32(events[newest].bytes)
        events[newest].texts.destroy(in: pool)
        setTexts(of: newest, happening)
        records[place].eventBytes += UInt32(events[newest].bytes)
        return true
    }

    private mutating func append(_ happening: Happening, to place: UInt32, _ now: Int64) {
        let (newer, older) = neighbours(of: happening.kind, at: place, now)
        let event = events.insert(
            Event(
                firstMs: now, lastMs: now, count: UInt32(clamping: happening.count), older: older,
                reason: Self.withBytes(of: happening.reason) { CompactBytes($0, pool: pool) },
                kind: Self.number(of: happening.kind)))
        setTexts(of: event, happening)
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

    private mutating func setTexts(of event: UInt32, _ happening: Happening) {
        let userName = Self.cut(happening.userName)
        let topic = Self.cut(happening.topic)
        let texts = happening.address + userName + topic + Self.cut(happening.detail)
        events[event].texts = texts.withUnsafeBytes { CompactBytes($0, pool: pool) }
        events[event].addressEnd = UInt16(clamping: happening.address.count)
        events[event].userNameEnd = UInt16(
            clamping: happening.address.count + userName.count)
        events[event].topicEnd = UInt16(
            clamping: happening.address.count + userName.count + topic.count)
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

    /// Lends the bytes of a text; the names of reasons need no copy.
    private static func withBytes<Result>(
        of text: String, _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result {
        var text = text
        return text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
    }

    /// At most ``mostText`` bytes, cut between characters.
    private static func cut(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
        var end = min(bytes.count, mostText)
        while end < bytes.count, end > 0, bytes[end] & 0xC0 == 0x80 { end -= 1 }
        return bytes[..<end]
    }

    private mutating func insert(_ client: UnsafeRawBufferPointer) -> UInt32 {
        let place = records.insert(Record(identifier: CompactBytes(client, pool: pool)))
        byIdentifier.insert(hash(client), place)
        list(place)
        return place
    }

    private mutating func forget(_ place: UInt32) {
        unlist(place)
        if records[place].isTroubled { troubled.remove(place, in: records) }
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
            found.append(Self.event(events[event], address))
            event = events[event].older
        }
        return ClientHistory(clientID: clientID, events: found)
    }

    /// Clients in trouble, the newest trouble first, of one kind or of all. A client whose trouble
    /// later events have displaced is left out.
    public func troubles(
        _ kind: ClientEvent.Kind?, limit: Int, address: (ArraySlice<UInt8>) -> String
    ) -> [ClientTrouble] {
        var found: [(place: UInt32, event: UInt32)] = []
        var (place, steps) = (troubled.first, Self.mostTroubleSteps)
        // A client's newest trouble of one kind may be older than those of clients behind it.
        while place != noIndex, steps > 0, kind != nil || found.count < limit {
            steps -= 1
            if let event = newestTrouble(of: place, kind) { found.append((place, event)) }
            place = records[place].troubleLinks.next
        }
        if kind != nil { found.sort { events[$0.event].lastMs > events[$1.event].lastMs } }
        return found.prefix(limit).map { place, event in
            ClientTrouble(
                clientID: String(decoding: records[place].identifier.array, as: UTF8.self),
                event: Self.event(events[event], address))
        }
    }

    private func newestTrouble(of place: UInt32, _ kind: ClientEvent.Kind?) -> UInt32? {
        var event = records[place].newest
        while event != noIndex {
            let its = ClientEvent.Kind.allCases[Int(events[event].kind)]
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

    private static func event(
        _ event: Event, _ address: (ArraySlice<UInt8>) -> String
    ) -> ClientEvent {
        let texts = event.texts.array
        func text(_ range: Range<Int>) -> String? {
            range.isEmpty ? nil : String(decoding: texts[range], as: UTF8.self)
        }
        let (addressEnd, userNameEnd) = (Int(event.addressEnd), Int(event.userNameEnd))
        let topicEnd = Int(event.topicEnd)
        return ClientEvent(
            kind: ClientEvent.Kind.allCases[Int(event.kind)],
            firstMs: event.firstMs, lastMs: event.lastMs,
            count: UInt64(event.count), reason: String(decoding: event.reason.array, as: UTF8.self),
            address: addressEnd > 0 ? address(texts[..<addressEnd]) : nil,
            userName: text(addressEnd..<userNameEnd),
            topic: text(userNameEnd..<topicEnd), detail: text(topicEnd..<texts.count))
    }

    private static func number(of kind: ClientEvent.Kind) -> UInt8 {
        switch kind {
        case .connected: 0
        case .disconnected: 1
        case .refused: 2
        case .lostMessages: 3
        case .filterRefused: 4
        case .denied: 5
        case .expired: 6
        case .deviceGone: 7
        case .deviceSetAside: 8
        }
    }
}
