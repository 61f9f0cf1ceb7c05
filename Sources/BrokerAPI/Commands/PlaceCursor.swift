/// The place in memory from which the next page of an unsorted list goes on, as a cursor.
///
/// The next run of the broker has its items at other places, so the text names the run: its cursor is
/// refused later, where it would leave items out.
public struct PlaceCursor<Place: FixedWidthInteger & UnsignedInteger & Sendable>: Sendable,
    Equatable
{
    public let place: Place

    public init(_ place: Place) { self.place = place }

    /// `nil` for text that is no cursor, and for a cursor of another run of the broker.
    public init?(text: String) {
        let parts = text.utf8.split(
            separator: UInt8(ascii: "-"), maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, parts[1].elementsEqual(BrokerRun.name.utf8),
            parts[0].allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            let place = Place(String(decoding: parts[0], as: UTF8.self))
        else { return nil }
        self.place = place
    }

    public var text: String { "\(place)-\(BrokerRun.name)" }
}
