import Structures

/// The purpose of a queue read, in the 64 bits that the store returns with the result.
enum ReadTag: Equatable {
    /// For a connected session, named by the read.
    case load
    /// For an ended session, named by the read.
    case ended
    /// For the wake of a device, whose handle's generation is below 2^24.
    case wake(Handle)
    /// For a query of the admin plane; its number is 1 to 2^63 - 1.
    case question(UInt64)

    private static var endedTag: UInt64 { 1 << 63 }
    private static var wakeTag: UInt64 { 3 << 62 }

    var encoded: UInt64 {
        switch self {
        case .load: 0
        case .ended: Self.endedTag
        case .wake(let device): Self.wakeTag | device.packed
        case .question(let number): number
        }
    }

    init(encoded: UInt64) {
        switch encoded {
        case 0: self = .load
        case Self.endedTag: self = .ended
        case Self.wakeTag...: self = .wake(Handle(packed: encoded & ~Self.wakeTag))
        default: self = .question(encoded)
        }
    }
}
