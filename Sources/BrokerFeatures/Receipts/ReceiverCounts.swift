import BrokerAPI
import BrokerCore

/// Receivers of one message that have ended, and all of them.
struct ReceiverCounts: BitwiseCopyable {
    var receivers: UInt32 = 0
    private(set) var acknowledged: UInt32 = 0
    private(set) var sent: UInt32 = 0
    private(set) var expired: UInt32 = 0
    private(set) var dropped: UInt32 = 0

    mutating func add(_ outcome: ReceiverOutcome) {
        switch outcome {
        case .open: break
        case .acknowledged: acknowledged += 1
        case .sent: sent += 1
        case .expired: expired += 1
        case .dropped: dropped += 1
        }
    }

    var counts: MessageReceipt.Counts {
        var counts = MessageReceipt.Counts()
        counts.receivers = Int(receivers)
        counts.acknowledged = Int(acknowledged)
        counts.sent = Int(sent)
        counts.expired = Int(expired)
        counts.dropped = Int(dropped)
        counts.pending = Int(receivers - acknowledged - sent - expired - dropped)
        return counts
    }
}
