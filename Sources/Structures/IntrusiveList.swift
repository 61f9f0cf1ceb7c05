/// The places of a record's neighbours in one list; ``noIndex`` for a record in no list.
public struct ListLinks: BitwiseCopyable {
    public fileprivate(set) var next = noIndex
    fileprivate var previous = noIndex

    public init() {}
}

/// A field of records that joins them to lists. A record may have several.
public protocol ListField {
    associatedtype Record: BitwiseCopyable

    static subscript(record: UnsafeMutablePointer<Record>) -> ListLinks { get set }
}

/// A list of records of a slab, linked through a field of the records. Each change takes constant time.
///
/// The list takes four bytes: the first record knows the last one. A loop begins with ``first``,
/// follows ``ListLinks/next``, and ends with ``noIndex``.
public struct IntrusiveList<Field: ListField>: BitwiseCopyable {
    public private(set) var first: UInt32

    /// The list that begins with a record; empty for ``noIndex``.
    public init(first: UInt32 = noIndex) { self.first = first }

    public var isEmpty: Bool { first == noIndex }

    /// Adds a record at the beginning.
    public mutating func prepend(_ index: UInt32, in records: borrowing Slab<Field.Record>) {
        append(index, in: records)
        rotate(to: index, in: records)
    }

    /// Adds a record at the end.
    public mutating func append(_ index: UInt32, in records: borrowing Slab<Field.Record>) {
        var links = ListLinks()
        if isEmpty {
            links.previous = index
            first = index
        } else {
            links.previous = Field[records.pointer(to: first)].previous
            Field[records.pointer(to: links.previous)].next = index
            Field[records.pointer(to: first)].previous = index
        }
        Field[records.pointer(to: index)] = links
    }

    /// Removes a record, which must be in this list.
    public mutating func remove(_ index: UInt32, in records: borrowing Slab<Field.Record>) {
        let links = Field[records.pointer(to: index)]
        if index == first {
            first = links.next
        } else {
            Field[records.pointer(to: links.previous)].next = links.next
        }
        // The first record keeps the place of the last one.
        let successor = links.next == noIndex ? first : links.next
        if successor != noIndex { Field[records.pointer(to: successor)].previous = links.previous }
    }

    /// The record after this one, for a list that is used as a ring: the last one is followed by the
    /// first.
    public func next(after index: UInt32, in records: borrowing Slab<Field.Record>) -> UInt32 {
        let next = Field[records.pointer(to: index)].next
        return next == noIndex ? first : next
    }

    /// Turns the list so that it begins with this record, which must be in it.
    public mutating func rotate(to index: UInt32, in records: borrowing Slab<Field.Record>) {
        guard index != first else { return }
        let last = Field[records.pointer(to: first)].previous
        Field[records.pointer(to: last)].next = first
        Field[records.pointer(to: Field[records.pointer(to: index)].previous)].next = noIndex
        first = index
    }
}
