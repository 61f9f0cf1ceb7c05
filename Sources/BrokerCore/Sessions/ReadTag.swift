import Structures

/// The purpose of a queue read, in the 64 bits that the store returns with the result.
package enum ReadTag: Equatable {
    /// For a connected session, named by the read.
    case load
    /// For an ended session, named by the read.
    case ended
    /// For a feature, which gave it a number other than 0 and 2^63.
    case feature(UInt64)

    private static var endedTag: UInt64 { 1 << 63 }

    package var encoded: UInt64 {
        switch self {
        case .load: 0
        case .ended: Self.endedTag
        case .feature(let number): number
        }
    }

    package init(encoded: UInt64) {
        switch encoded {
        case 0: self = .load
        case Self.endedTag: self = .ended
        default: self = .feature(encoded)
        }
    }
}
