/// The identifiers of the last 1,000 messages without a sequence that the app has acknowledged.
package struct RecentIdentifiers: Equatable, Sendable {
    package static let most = 1_000

    private var known: Set<[UInt8]> = []
    /// A ring: once it is full, `oldest` is the place that the next identifier takes.
    private var ring: [[UInt8]] = []
    private var oldest = 0

    package init() {}

    /// The identifiers, the oldest first.
    package var all: [[UInt8]] { Array(ring[oldest...] + ring[..<oldest]) }

    package func contains(_ identifier: [UInt8]) -> Bool { known.contains(identifier) }

    package mutating func insert(_ identifier: [UInt8]) {
        guard known.insert(identifier).inserted else { return }
        if ring.count < Self.most {
            ring.append(identifier)
        } else {
            known.remove(ring[oldest])
            ring[oldest] = identifier
            oldest = (oldest + 1) % Self.most
        }
    }

    package static func == (left: Self, right: Self) -> Bool { left.all == right.all }
}
