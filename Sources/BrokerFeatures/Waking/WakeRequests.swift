import BrokerAPI
import BrokerCore

/// The senders' requests for wakes, one of each kind of device.
struct WakeRequests {
    private struct Request {
        let most: Int
        let take: @Sendable ([Wake]) -> Void
    }

    private var requests: [Device.Kind: Request] = [:]

    /// Keeps a request in place of an earlier one of the same kind.
    mutating func set(
        _ kind: Device.Kind, most: Int, _ take: @escaping @Sendable ([Wake]) -> Void
    ) {
        requests[kind] = most > 0 ? Request(most: most, take: take) : nil
    }

    /// The most wakes that a sender takes now; `nil` when none asks.
    func most(_ kind: Device.Kind) -> Int? { requests[kind]?.most }

    /// Takes a request out, to be answered.
    mutating func take(_ kind: Device.Kind) -> (@Sendable ([Wake]) -> Void)? {
        requests.removeValue(forKey: kind)?.take
    }
}
