/// A queue position whose message a later one may replace.
public struct StoredCollapsible: Hashable, Sendable {
    public var session: UInt64
    public var position: UInt64
    /// Names the topic and the collapse key.
    public var key: UInt128
    /// The sequence of the message, and those that it superseded; empty without sequences.
    public var sequences: [UInt64]

    public init(session: UInt64, position: UInt64, key: UInt128, sequences: [UInt64]) {
        self.session = session
        self.position = position
        self.key = key
        self.sequences = sequences
    }
}

/// A segment's changes of positions that may be replaced.
public struct CollapseChanges: Hashable, Sendable {
    public struct Place: Hashable, Sendable {
        public var session: UInt64
        public var position: UInt64

        public init(session: UInt64, position: UInt64) {
            self.session = session
            self.position = position
        }
    }

    /// `nil` for a position that has ended.
    public var positions: [Place: StoredCollapsible?] = [:]

    public init() {}

    public var isEmpty: Bool { positions.isEmpty }
}

extension WriteBatch {
    /// Follows the record of its queue position.
    public mutating func collapsible(_ position: StoredCollapsible) {
        guard begin(.collapsible) else { return }
        put(position.session)
        put(position.position)
        put(position.key)
        put(UInt32(position.sequences.count))
        for sequence in position.sequences { put(sequence) }
    }

    /// The queue position has ended, or a later one has its key.
    public mutating func collapsibleEnded(session: UInt64, position: UInt64) {
        guard begin(.collapsibleEnded) else { return }
        put(session)
        put(position)
    }
}

/// A ``StoredCollapsible`` in the bytes of a record.
public struct CollapsibleView: BitwiseCopyable {
    let session: UInt64
    let position: UInt64
    let key: UInt128
    let sequences: RecordView.Bytes
}

extension RecordReader {
    mutating func collapsible() throws(DamagedRecord) -> CollapsibleView {
        CollapsibleView(
            session: try integer(), position: try integer(), key: try integer(),
            sequences: try numbers())
    }
}

extension StoredCollapsible {
    /// A copy of a record that owns its sequences.
    init(_ view: CollapsibleView, in bytes: UnsafeRawBufferPointer) {
        self.init(
            session: view.session, position: view.position, key: view.key,
            sequences: stride(from: 0, to: view.sequences.count, by: 8).map {
                UInt64(
                    littleEndian: bytes.loadUnaligned(
                        fromByteOffset: view.sequences.offset + $0, as: UInt64.self))
            })
    }
}
