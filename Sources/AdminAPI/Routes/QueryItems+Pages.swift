import BrokerAPI
import Credentials
import PlainText

extension QueryItems {
    /// Pages of the data plane that are asked for to fill one of an answer.
    private static let mostRounds = 64
    /// Bytes of items after which an answer has no further page.
    private static let mostBytes = 1 << 20

    /// Asks for pages until they hold as many items as the caller wants by the parameters `limit` and
    /// `cursor`, because a page of the data plane ends after a bounded search.
    /// `bytes` measures an item; an answer of many bytes ends early.
    ///
    /// - Returns: The items, and the cursor of what follows them.
    func gather<Item: Sendable, Place: FixedWidthInteger & UnsignedInteger & Sendable>(
        _ ask: (Place, Int) async throws(Problem) -> ([Item], String?),
        bytes: (Item) -> Int = { _ in 0 }
    ) async throws(Problem) -> ([Item], String?) {
        let limit = try pageSize()
        var place = try placeCursor(Place.self)
        var items: [Item] = []
        var size = 0
        for _ in 0..<Self.mostRounds {
            let (found, next) = try await ask(place, limit - items.count)
            items += found
            for item in found { size += bytes(item) }
            guard let next, let following = Place(next) else { return (items, nil) }
            place = following
            if items.count >= limit || size >= Self.mostBytes { break }
        }
        return (items, PlaceCursor(place).text)
    }

    /// The place that the parameter `cursor` names; 0 without it.
    func placeCursor<Place: FixedWidthInteger & UnsignedInteger & Sendable>(
        _: Place.Type
    ) throws(Problem) -> Place {
        guard let text = self["cursor"] else { return 0 }
        guard let cursor = PlaceCursor<Place>(text: text) else { throw Self.unknownCursor(text) }
        return cursor.place
    }

    /// The page of a file's entries that the parameters `limit` and `cursor` ask for.
    ///
    /// A cursor is the digest of the name that ends the page before, so that entries which come or go
    /// before it move nothing. It is refused once its own entry is gone.
    func page<Entry>(
        of entries: [Entry], by name: (Entry) -> String
    ) throws(Problem) -> (entries: ArraySlice<Entry>, next: String?) {
        var rest = entries[...]
        if let text = self["cursor"] {
            let cursor = ForeignText(text)
            guard let last = rest.firstIndex(where: { Self.cursor(of: name($0)) == cursor }) else {
                throw Self.unknownCursor(text)
            }
            rest = rest[(last + 1)...]
        }
        let page = rest.prefix(try pageSize())
        guard page.count < rest.count, let last = page.last else { return (page, nil) }
        return (page, Self.cursor(of: name(last)).string)
    }

    private static func cursor(of name: String) -> ForeignText {
        ForeignText(String(SHA256Digest(of: name.utf8).hexadecimal.prefix(32)))
    }
}
