/// Something that the journal should hold and does not, found by a replay.
public struct JournalDamage: Hashable, Sendable {
    public enum Kind: Hashable, Sendable {
        /// These bytes held synced frames, and intact ones follow in the same segment.
        case unreadableFrames
        /// The rest of the segment, up to where its successor says that it ends.
        case shortSegment
        /// No file holds these segments.
        case missingSegments
        /// The file cannot be told from any other: both copies of its header are damaged.
        case unreadableHeader
        /// Two files claim to be the same segment; the first one was replayed.
        case duplicateSegment
    }

    public let kind: Kind
    /// The file; the directory if segments are missing.
    public let path: String
    /// `nil` if the file does not tell.
    public let segments: ClosedRange<UInt64>?
    /// From the beginning of the file, in bytes.
    public let offset: Int
    /// Bytes that were lost; 0 if nobody knows.
    public let byteCount: Int
}

extension JournalDamage: CustomStringConvertible {
    /// One line: what, and where.
    public var description: String {
        let file = StoreFailure.quoted(path)
        let numbers = segments.map(Self.named) ?? "a segment"
        return switch kind {
        case .unreadableFrames:
            "\(file): \(byteCount) bytes at \(offset) of \(numbers) are damaged"
        case .shortSegment:
            "\(file): the last \(byteCount) bytes of \(numbers), from \(offset) on, are damaged"
        case .missingSegments: "\(file): of the journal is missing: \(numbers)"
        case .unreadableHeader: "\(file): the header is damaged, so nothing of the file is read"
        case .duplicateSegment: "\(file): another file has the same number, so this one is not read"
        }
    }

    private static func named(_ numbers: ClosedRange<UInt64>) -> String {
        numbers.lowerBound == numbers.upperBound
            ? "segment \(numbers.lowerBound)"
            : "segments \(numbers.lowerBound) to \(numbers.upperBound)"
    }
}

/// A write that a crash interrupted: normal, as it was never acknowledged.
public struct TornTail: Hashable, Sendable {
    public let path: String
    public let segment: UInt64
    /// From the beginning of the file, in bytes.
    public let offset: Int
    /// Bytes of the frames that are given up, as far as they are known.
    public let byteCount: Int
}

/// What a replay found.
public struct ReplayReport: Hashable, Sendable {
    /// More than this many damages are only counted.
    public static let maximumListedDamage = 100

    /// Segments of which all that is readable was handed over, rising.
    public internal(set) var segments: [UInt64] = []
    public internal(set) var frameCount = 0
    /// Payload bytes of these frames.
    public internal(set) var byteCount = 0
    /// `nil` if the newest segment ends with a whole frame.
    public internal(set) var tornTail: TornTail?
    /// The first damages, in the order in which they were found.
    public private(set) var damage: [JournalDamage] = []
    public private(set) var damageCount = 0
    /// Bytes that were lost, as far as that is known.
    public private(set) var damagedByteCount = 0

    /// Each damage in a line for a person, and how many more there are.
    var damageLines: [String] {
        let more = damageCount - damage.count
        return damage.map(\.description) + (more > 0 ? ["and \(more) more of the journal"] : [])
    }

    mutating func note(_ found: JournalDamage) {
        damageCount += 1
        damagedByteCount += found.byteCount
        if damage.count < Self.maximumListedDamage { damage.append(found) }
    }
}
