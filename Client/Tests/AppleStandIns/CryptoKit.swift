import Foundation

public struct SHA256 {
    public struct Digest: Sequence, Sendable {
        public func makeIterator() -> Array<UInt8>.Iterator { fatalError("a declaration only") }
    }

    public static func hash(data: some DataProtocol) -> Digest { fatalError("a declaration only") }
}
