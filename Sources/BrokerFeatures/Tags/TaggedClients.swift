import BrokerAPI
import BrokerCore
import Store
import Structures

/// Tags of clients, by which pushes choose their receivers.
///
/// A client is here while it has tags, with or without a session. Its place stays the same as long,
/// so a walk over all places, in slices, meets each client once that has tags all the while.
struct TaggedClients: ~Copyable {
    struct Client: BitwiseCopyable {
        let identifier: CompactBytes
        /// Indices of tags, each in four bytes, in the order in which they were added.
        var tags: CompactBytes
        /// False in a free place.
        var isTaken = true
    }

    struct Tag: BitwiseCopyable {
        let text: CompactBytes
        var clients: UInt32 = 0
        /// False in a free place.
        var isTaken = true
    }

    /// Bytes that a client or a tag counts besides its text, and a client's tag.
    private static var recordBytes: Int { 48 }
    private static var membershipBytes: Int { 4 }
    /// The most tags of one client, whose indices a ``CompactBytes`` holds.
    private static var mostTags: Int { Int(UInt16.max) / membershipBytes }

    /// Never read; see the same in ``Shard``.
    private let addressOnly: any Sendable = ()
    private let hash: KeyedHash
    private(set) var clients = Slab<Client>()
    private var tags = Slab<Tag>()
    private var byIdentifier = HashIndex()
    private var byText = HashIndex()
    private(set) var bytes = 0

    init(hash: KeyedHash) { self.hash = hash }

    var count: Int { clients.count }

    // MARK: Finding

    func find(_ identifier: UnsafeRawBufferPointer) -> UInt32? {
        byIdentifier.find(hash(identifier)) { clients[$0].identifier.equals(identifier) }
    }

    private func find(tag text: UnsafeRawBufferPointer) -> UInt32? {
        byText.find(hash(text)) { tags[$0].text.equals(text) }
    }

    /// Indices of a client's tags.
    private func indices(of place: UInt32) -> [UInt32] {
        clients[place].tags.withBytes { bytes in
            stride(from: 0, to: bytes.count, by: 4).map {
                bytes.loadUnaligned(fromByteOffset: $0, as: UInt32.self)
            }
        }
    }

    /// The tags of a client, in the order of their bytes.
    func texts(of identifier: UnsafeRawBufferPointer) -> [[UInt8]] {
        guard let place = find(identifier) else { return [] }
        return indices(of: place).map { tags[$0].text.array }
            .sorted { $0.lexicographicallyPrecedes($1) }
    }

    // MARK: Changes

    /// Bytes that these tags and the client would count at most, beyond what is here.
    func mostBytes(adding texts: [[UInt8]], to identifier: UnsafeRawBufferPointer) -> Int {
        texts.reduce(find(identifier) == nil ? Self.recordBytes + identifier.count : 0) {
            $0 + Self.membershipBytes + Self.recordBytes + $1.count
        }
    }

    /// Adds a tag; false when the client has it, or more than a client may have.
    mutating func add(
        _ text: UnsafeRawBufferPointer, to identifier: UnsafeRawBufferPointer, pool: BytePool
    ) -> Bool {
        let tag = find(tag: text) ?? insert(tag: text, pool)
        let place = find(identifier) ?? insert(client: identifier, pool)
        var list = indices(of: place)
        guard !list.contains(tag), list.count < Self.mostTags else {
            if tags[tag].clients == 0 { remove(tag: tag, pool) }
            return false
        }
        list.append(tag)
        tags[tag].clients += 1
        bytes += Self.membershipBytes
        set(list, of: place, pool)
        return true
    }

    /// Removes a tag; false when the client does not have it.
    mutating func remove(
        _ text: UnsafeRawBufferPointer, from identifier: UnsafeRawBufferPointer, pool: BytePool
    ) -> Bool {
        guard let tag = find(tag: text), let place = find(identifier) else { return false }
        var list = indices(of: place)
        guard let index = list.firstIndex(of: tag) else { return false }
        list.remove(at: index)
        tags[tag].clients -= 1
        bytes -= Self.membershipBytes
        set(list, of: place, pool)
        if tags[tag].clients == 0 { remove(tag: tag, pool) }
        if list.isEmpty { remove(client: place, pool) }
        return true
    }

    private mutating func set(_ list: [UInt32], of place: UInt32, _ pool: BytePool) {
        clients[place].tags.destroy(in: pool)
        clients[place].tags = list.withUnsafeBytes { CompactBytes($0, pool: pool) }
    }

    private mutating func insert(tag text: UnsafeRawBufferPointer, _ pool: BytePool) -> UInt32 {
        let tag = tags.insert(Tag(text: CompactBytes(text, pool: pool)))
        byText.insert(hash(text), tag)
        bytes += Self.recordBytes + text.count
        return tag
    }

    private mutating func insert(
        client identifier: UnsafeRawBufferPointer, _ pool: BytePool
    ) -> UInt32 {
        let place = clients.insert(
            Client(identifier: CompactBytes(identifier, pool: pool), tags: CompactBytes()))
        byIdentifier.insert(hash(identifier), place)
        bytes += Self.recordBytes + identifier.count
        return place
    }

    private mutating func remove(tag: UInt32, _ pool: BytePool) {
        let text = tags[tag].text
        byText.remove(text.withBytes { hash($0) }, tag)
        bytes -= Self.recordBytes + text.count
        text.destroy(in: pool)
        tags[tag].isTaken = false
        tags.remove(tag)
    }

    private mutating func remove(client place: UInt32, _ pool: BytePool) {
        let identifier = clients[place].identifier
        byIdentifier.remove(identifier.withBytes { hash($0) }, place)
        bytes -= Self.recordBytes + identifier.count
        identifier.destroy(in: pool)
        clients[place].isTaken = false
        clients.remove(place)
    }

    // MARK: Walks

    /// The end of the places of clients.
    var endIndex: UInt32 { clients.endIndex }

    /// Tags of an expression by their indices, which are valid until tags change.
    struct Matcher {
        fileprivate var any: [UInt32]
        fileprivate var all: [UInt32]
        fileprivate var none: [UInt32]
        /// False when no client can have them.
        fileprivate var isPossible: Bool
    }

    func matcher(of expression: TagExpression) -> Matcher {
        let (any, all) = (known(expression.any), known(expression.all))
        return Matcher(
            any: any, all: all, none: known(expression.none),
            isPossible: all.count == expression.all.count
                && any.isEmpty == expression.any.isEmpty)
    }

    /// Indices of the tags that any client has.
    private func known(_ texts: [[UInt8]]) -> [UInt32] {
        var indices: [UInt32] = []
        for text in texts {
            if let tag = text.withUnsafeBytes({ find(tag: $0) }) { indices.append(tag) }
        }
        return indices
    }

    /// True when a client is at the place and has the tags.
    func matches(_ place: UInt32, _ matcher: Matcher) -> Bool {
        guard matcher.isPossible, place < clients.endIndex, clients[place].isTaken else {
            return false
        }
        return clients[place].tags.withBytes { bytes in
            func has(_ tag: UInt32) -> Bool {
                stride(from: 0, to: bytes.count, by: 4).contains {
                    bytes.loadUnaligned(fromByteOffset: $0, as: UInt32.self) == tag
                }
            }
            return (matcher.any.isEmpty || matcher.any.contains(where: has))
                && matcher.all.allSatisfy(has) && !matcher.none.contains(where: has)
        }
    }

    /// Tags in the places from `first` up to `end`, with the numbers of their clients.
    func summaries(from first: UInt32, most: Int, places: UInt32) -> TagPage {
        var page = TagPage()
        var place = min(first, tags.endIndex)
        let stop = place + min(places, tags.endIndex - place)
        while place < stop, page.tags.count < most {
            let tag = tags[place]
            if tag.isTaken {
                page.tags.append(
                    TagSummary(
                        tag: String(decoding: tag.text.array, as: UTF8.self),
                        clients: Int(tag.clients)))
            }
            place += 1
        }
        if place < tags.endIndex { page.next = "\(place)" }
        return page
    }

    /// Identifiers of clients with a tag, in the places from `first` on.
    func clients(
        with expression: TagExpression, from first: UInt32, most: Int, places: UInt32
    ) -> TaggedClientPage {
        var page = TaggedClientPage()
        let matcher = matcher(of: expression)
        guard matcher.isPossible else { return page }
        var place = min(first, endIndex)
        let stop = place + min(places, endIndex - place)
        while place < stop, page.clients.count < most {
            if matches(place, matcher) {
                page.clients.append(
                    String(decoding: clients[place].identifier.array, as: UTF8.self))
            }
            place += 1
        }
        if place < endIndex { page.next = "\(place)" }
        return page
    }
}

extension TaggedClients {
    var figures: [FeatureFigure] {
        [
            .gauge("hermes_tagged_clients", "Clients with tags.", count),
            .gauge("hermes_tag_bytes", "Tags, and identifiers of clients with tags.", bytes),
        ]
    }
}
