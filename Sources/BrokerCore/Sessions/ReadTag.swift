/// The asker of a read of a queue, in the 64 bits that come back with the part of the queue.
enum ReadTag: Equatable {
    /// A connected session, named by the read itself.
    case load
    /// An ended session, named by the read itself.
    case ended
    /// A question of the admin plane, by its number, which is not 0 and below 2^63.
    case question(UInt64)

    private static var endedTag: UInt64 { 1 << 63 }

    var encoded: UInt64 {
        switch self {
        case .load: 0
        case .ended: Self.endedTag
        case .question(let number): number
        }
    }

    init(encoded: UInt64) {
        switch encoded {
        case 0: self = .load
        case Self.endedTag: self = .ended
        default: self = .question(encoded)
        }
    }
}
