/// Names an entry of a slab. The index of a removed entry is used again; the generation tells the
/// old entry from the new one.
///
/// The generation has 31 bits, so that index, generation and a flag fit the 64 bits of an epoll
/// event.
public struct Handle: Hashable, Sendable, BitwiseCopyable {
    public let index: UInt32
    public let generation: UInt32

    public init(index: UInt32, generation: UInt32) {
        self.index = index
        self.generation = generation
    }

    /// Index in the low half, generation in the high half.
    public var packed: UInt64 { UInt64(generation) << 32 | UInt64(index) }

    public init(packed: UInt64) {
        index = UInt32(truncatingIfNeeded: packed)
        generation = UInt32(truncatingIfNeeded: packed >> 32)
    }
}

/// Marks "no record" in a field that holds an index.
public let noIndex = UInt32.max

/// Records of one trivial type, found by index, in chunks of 256 that never move.
///
/// Growth allocates one chunk and copies no record, so that the insertion after a million costs as
/// much as the first. An access is a bounds check and two loads. The record itself says whether it
/// is in use: a slab of optionals would cost a flag and a branch more per access.
public struct Slab<Element: BitwiseCopyable>: ~Copyable {
    static var chunkShift: UInt32 { 8 }
    static var chunkCount: Int { 256 }

    var chunks: UnsafeMutablePointer<UnsafeMutablePointer<Element>>
    var chunkCapacity: Int
    var chunksInUse = 0
    var freeIndices: [UInt32] = []
    /// One past the highest index ever handed out.
    public private(set) var endIndex: UInt32 = 0
    /// Entries in use.
    public private(set) var count = 0

    public init() {
        chunkCapacity = 8
        chunks = .allocate(capacity: chunkCapacity)
    }

    deinit {
        for index in 0..<chunksInUse { chunks[index].deallocate() }
        chunks.deallocate()
    }

    /// Puts the element at a free index and returns the index.
    public mutating func insert(_ element: Element) -> UInt32 {
        count += 1
        if let index = freeIndices.popLast() {
            self[index] = element
            return index
        }
        let index = endIndex
        precondition(index != noIndex, "a slab holds fewer than 2^32 - 1 records")
        if Int(index) == chunksInUse * Self.chunkCount { addChunk(filledWith: element) }
        endIndex += 1
        self[index] = element
        return index
    }

    /// Puts the element at `index`, which another slab handed out, and makes room for it. Does not
    /// change ``count``.
    public mutating func place(_ element: Element, at index: UInt32) {
        while Int(index) >= chunksInUse * Self.chunkCount { addChunk(filledWith: element) }
        while endIndex <= index {
            self.endIndex += 1
            self[endIndex - 1] = element
        }
        self[index] = element
    }

    /// Frees an index. The caller has marked its record as unused.
    public mutating func remove(_ index: UInt32) {
        precondition(index < endIndex, "slab index \(index) of \(endIndex) removed")
        count -= 1
        freeIndices.append(index)
    }

    public subscript(index: UInt32) -> Element {
        unsafeAddress { UnsafePointer(pointer(to: index)) }
        unsafeMutableAddress { pointer(to: index) }
    }

    /// The record's place, which never moves: for the address accessors of a type that wraps a slab.
    public func pointer(to index: UInt32) -> UnsafeMutablePointer<Element> {
        precondition(Int(index) < chunksInUse << Int(Self.chunkShift), "slab index out of range")
        return chunks[Int(index >> Self.chunkShift)] + Int(index & UInt32(Self.chunkCount - 1))
    }

    /// Bytes of all chunks, in use or free.
    public var allocatedBytes: Int {
        chunksInUse * Self.chunkCount * MemoryLayout<Element>.stride
    }

    /// Adds a chunk. All its records are initialised, so that reading any index below the capacity
    /// is defined.
    private mutating func addChunk(filledWith element: Element) {
        if chunksInUse == chunkCapacity {
            let larger = UnsafeMutablePointer<UnsafeMutablePointer<Element>>.allocate(
                capacity: chunkCapacity * 2)
            larger.moveInitialize(from: chunks, count: chunksInUse)
            chunks.deallocate()
            chunks = larger
            chunkCapacity *= 2
        }
        let chunk = UnsafeMutablePointer<Element>.allocate(capacity: Self.chunkCount)
        chunk.initialize(repeating: element, count: Self.chunkCount)
        chunks[chunksInUse] = chunk
        chunksInUse += 1
    }
}
