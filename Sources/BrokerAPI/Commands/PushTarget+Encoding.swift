/// The form in which the store keeps the clients of a push: a kind, then lists of byte strings. A
/// list is its count, and each string its length, in 32 bits, little-endian, in front of it.
extension PushTarget {
    private static var kindOfClients: UInt8 { 0 }
    private static var kindOfTags: UInt8 { 1 }

    public var encoded: [UInt8] {
        func list(_ texts: [[UInt8]]) -> [UInt8] {
            texts.reduce(into: Self.count(texts.count)) { bytes, text in
                bytes += Self.count(text.count)
                bytes += text
            }
        }
        switch self {
        case .clients(let clients): return [Self.kindOfClients] + list(clients)
        case .tags(let tags):
            return [Self.kindOfTags] + list(tags.any) + list(tags.all) + list(tags.none)
        }
    }

    private static func count(_ count: Int) -> [UInt8] {
        withUnsafeBytes(of: UInt32(count).littleEndian) { [UInt8]($0) }
    }

    /// `nil` for bytes that are none of the above, which only damage makes.
    public init?(encoded bytes: [UInt8]) {
        var rest = bytes[...]
        func count() -> Int? {
            guard rest.count >= 4 else { return nil }
            defer { rest = rest.dropFirst(4) }
            return rest.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
        }
        func list() -> [[UInt8]]? {
            guard let texts = count() else { return nil }
            var list: [[UInt8]] = []
            for _ in 0..<texts {
                guard let length = count(), rest.count >= length else { return nil }
                list.append(Array(rest.prefix(length)))
                rest = rest.dropFirst(length)
            }
            return list
        }
        switch rest.popFirst() {
        case Self.kindOfClients?:
            guard let clients = list() else { return nil }
            self = .clients(clients)
        case Self.kindOfTags?:
            guard let any = list(), let all = list(), let none = list() else { return nil }
            self = .tags(TagExpression(any: any, all: all, none: none))
        default: return nil
        }
    }
}
