import BrokerAPI
import BrokerCore

/// What became of a followed message for one receiver, with its number in the store.
enum ReceiverOutcome: UInt8, BitwiseCopyable {
    /// The message waits or is in flight: its queue knows.
    case open = 0
    case acknowledged = 1
    /// Sent with QoS 0.
    case sent = 2
    case expired = 3
    case dropped = 4

    /// Whether its end is an event; nothing more is known of a message sent with QoS 0.
    var event: ReceiptEvent.Outcome? {
        switch self {
        case .open, .sent: nil
        case .acknowledged: .acknowledged
        case .expired: .expired
        case .dropped: .dropped
        }
    }
}

/// The reason for which a receiver did not get a followed message, with its number in the store:
/// that of a ``DropReason``, or one of these.
struct ReceiverReason: BitwiseCopyable, Equatable {
    let number: UInt8

    static let none = ReceiverReason(number: 255)
    static let sessionEnded = ReceiverReason(number: 254)
    static let handedOver = ReceiverReason(number: 253)

    init(number: UInt8) { self.number = number }
    init(_ reason: DropReason) { number = reason.rawValue }

    var name: String? {
        switch self {
        case .none: nil
        case .sessionEnded: "session_ended"
        case .handedOver: "handed_over"
        default: DropReason(rawValue: number)?.name
        }
    }
}

extension QueueEnd {
    var outcome: (ReceiverOutcome, ReceiverReason) {
        switch self {
        case .acknowledged: (.acknowledged, .none)
        case .sent: (.sent, .none)
        case .dropped(.expired): (.expired, .none)
        case .dropped(let reason): (.dropped, ReceiverReason(reason))
        case .handedOver: (.dropped, .handedOver)
        case .sessionEnded: (.dropped, .sessionEnded)
        }
    }
}
