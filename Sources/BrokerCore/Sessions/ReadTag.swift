import Structures

/// The purpose of a queue read, in the 64 bits that the store returns with the result.
package enum ReadTag: Equatable {
    /// For a connected session, named by the read.
    case load
    /// For an ended session, named by the read.
    case ended
    /// For an offline session, named by the read, of which more counts as in flight than can be.
    case unsure
    /// For a feature, which gave it a number other than 0 that is below 2^63.
    case feature(UInt64)

    private static var endedTag: UInt64 { 1 << 63 }
    private static var unsureTag: UInt64 { 1 << 63 | 1 }

    package var encoded: UInt64 {
        switch self {
        case .load: 0
        case .ended: Self.endedTag
        case .unsure: Self.unsureTag
        case .feature(let number): number
        }
    }

    package init(encoded: UInt64) {
        switch encoded {
        case 0: self = .load
        case Self.endedTag: self = .ended
        case Self.unsureTag: self = .unsure
        default: self = .feature(encoded)
        }
    }
}
