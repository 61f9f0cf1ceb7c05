import BrokerAPI

extension QueryItems {
    /// Pages of the data plane that are asked for to fill one of an answer.
    private static let mostRounds = 64

    /// The highest place that a cursor may name.
    static func most<Place: FixedWidthInteger>(_: Place.Type) -> Int64 {
        min(Int64(clamping: Place.max), 1 << 62)
    }

    /// Asks for pages until they hold as many items as the caller wants by the parameters `limit` and
    /// `cursor`, because a page of the data plane ends after a bounded search.
    ///
    /// - Returns: The items, and the cursor of what follows them.
    func gather<Item: Sendable, Place: FixedWidthInteger & UnsignedInteger>(
        _ ask: (Place, Int) async throws(Problem) -> ([Item], String?)
    ) async throws(Problem) -> ([Item], String?) {
        let limit = try pageSize()
        let cursor = try integer("cursor", in: 0...Self.most(Place.self)) ?? 0
        var place = Place(cursor)
        var items: [Item] = []
        for _ in 0..<Self.mostRounds {
            let (found, next) = try await ask(place, limit - items.count)
            items += found
            guard let next, let following = Place(next) else { return (items, nil) }
            place = following
            if items.count >= limit { break }
        }
        return (items, "\(place)")
    }
}
