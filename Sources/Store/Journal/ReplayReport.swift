import PlainText

/// Damage that a replay found: the journal should hold something and does not.
public struct JournalDamage: Hashable, Sendable {
    public enum Kind: Hashable, Sendable {
        /// These bytes held synchronised frames. Intact frames follow in the same segment.
        case unreadableFrames
        /// The rest of the segment is damaged, up to the end that its successor names.
        case shortSegment
        /// No file holds these segments.
        case missingSegments
        /// Both copies of the file's header are damaged, so its segment is unknown.
        case unreadableHeader
        /// Two files have the same segment number; the first one was replayed.
        case duplicateSegment
    }

    public let kind: Kind
    /// Path of the file; of the directory if segments are missing.
    public let path: String
    /// `nil` if the file does not tell.
    public let segments: ClosedRange<UInt64>?
    /// Bytes from the beginning of the file.
    public let offset: Int
    /// Number of bytes that were lost; 0 if it is not known.
    public let byteCount: Int
}

extension JournalDamage: CustomStringConvertible {
    /// One line that names the damage and its place.
    public var description: String {
        let file = VisibleText.quoted(path)
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

/// A write that a crash interrupted. That is normal: it was never acknowledged.
public struct TornTail: Hashable, Sendable {
    public let path: String
    public let segment: UInt64
    /// Bytes from the beginning of the file.
    public let offset: Int
    /// Bytes of the frames that are given up, as far as they are known.
    public let byteCount: Int
}

/// The result of a replay.
public struct ReplayReport: Hashable, Sendable {
    /// The most damages that are listed; further ones are only counted.
    public static let maximumListedDamage = 100

    /// Segments whose readable frames were all passed on, rising.
    public internal(set) var segments: [UInt64] = []
    public internal(set) var frameCount = 0
    /// Bytes of these frames' payloads.
    public internal(set) var byteCount = 0
    /// `nil` if the newest segment ends with a complete frame.
    public internal(set) var tornTail: TornTail?
    /// The first damages, in the order in which they were found.
    public private(set) var damage: [JournalDamage] = []
    public private(set) var damageCount = 0
    /// Number of bytes that were lost, as far as it is known.
    public private(set) var damagedByteCount = 0

    /// The damages for a person to read, one line each, and the number of those that are not
    /// listed.
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
