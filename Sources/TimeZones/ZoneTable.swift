/// Time zones by their names, such as `Europe/Berlin`.
public struct ZoneTable: Sendable, Equatable {
    /// The most bytes of a name.
    public static let mostNameBytes = 64
    /// The zone that is known without any zone data.
    public static let utc = "UTC"

    private var zones: [[UInt8]: ZoneRules] = [Array(utc.utf8): .utc]

    /// Knows ``utc`` alone.
    public init() {}

    public var count: Int { zones.count }

    public subscript(name: some Sequence<UInt8>) -> ZoneRules? { zones[Array(name)] }

    public mutating func set(_ name: [UInt8], _ rules: ZoneRules) { zones[name] = rules }

    /// True for what may be the name of a zone: letters, digits, `-`, `_`, `+` and `/`.
    public static func isName(_ name: some Collection<UInt8>) -> Bool {
        (1...mostNameBytes).contains(name.count) && name.first != UInt8(ascii: "/")
            && name.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2B, 0x2D, 0x2F, 0x5F: true
                default: false
                }
            }
    }
}
