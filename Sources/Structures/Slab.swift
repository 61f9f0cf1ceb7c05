/// Names a slab entry for as long as it lives: a removed entry's index is reused, its generation is not.
///
/// The generation is 31 bits, so that index and generation also fit an epoll event beside a flag.
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

/// "No entry", where an index links records.
public let noIndex = UInt32.max

/// Records of one trivial type, by index, in chunks that never move.
///
/// Growth allocates one chunk and copies nothing, so that the million-and-first session costs what
/// the first did. Access is a bounds check and two loads; the record's own state says whether it is
/// in use, since a slab of optionals would cost a flag and a branch more per access.
/// The owner calls ``deallocate()``; there is no reference counting.
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

    /// Takes a free index and puts the element there.
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

    /// Makes room for `index`, which another slab handed out, and puts the element there.
    public mutating func place(_ element: Element, at index: UInt32) {
        while Int(index) >= chunksInUse * Self.chunkCount { addChunk(filledWith: element) }
        while endIndex <= index {
            self.endIndex += 1
            self[endIndex - 1] = element
        }
        self[index] = element
    }

    /// Gives an index back; the caller has marked its record unused.
    public mutating func remove(_ index: UInt32) {
        precondition(index < endIndex, "slab index \(index) of \(endIndex) removed")
        count -= 1
        freeIndices.append(index)
    }

    public subscript(index: UInt32) -> Element {
        unsafeAddress {
            precondition(
                Int(index) < chunksInUse << Int(Self.chunkShift), "slab index out of range")
            return UnsafePointer(
                chunks[Int(index >> Self.chunkShift)]
                    + Int(index & UInt32(Self.chunkCount - 1)))
        }
        unsafeMutableAddress {
            precondition(
                Int(index) < chunksInUse << Int(Self.chunkShift), "slab index out of range")
            return chunks[Int(index >> Self.chunkShift)] + Int(index & UInt32(Self.chunkCount - 1))
        }
    }

    /// Bytes held, used or not.
    public var allocatedBytes: Int {
        chunksInUse * Self.chunkCount * MemoryLayout<Element>.stride
    }

    /// Whole chunks are initialised, so that reading any index below the capacity is defined.
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
