import BrokerAPI

/// A refusal by the access rules, as it is counted.
package enum AccessRefusal: UInt8, CountLabel {
    /// A PUBLISH; its connection was closed.
    case publish
    /// A filter of a SUBSCRIBE, answered with 0x80.
    case subscribe
    /// A message that a subscription matches and whose topic its client may not read.
    case deliver
    /// A will that was due.
    case will

    package var name: String {
        switch self {
        case .publish: "publish"
        case .subscribe: "subscribe"
        case .deliver: "deliver"
        case .will: "will"
        }
    }
}

/// A refusal by the access rules, as it is reported.
package struct AccessReport: Sendable {
    package enum Event: Hashable, Sendable {
        case publish, subscribe, will
        /// A filter was granted that reaches further than the rights.
        case narrowed
        /// A message was not sent to a subscription that it matches.
        case withheld
        /// A queued message was dropped.
        case deliver

        /// The refusal that is counted; `nil` for a filter that was granted.
        var refusal: AccessRefusal? {
            switch self {
            case .publish: .publish
            case .subscribe: .subscribe
            case .will: .will
            case .narrowed: nil
            case .withheld, .deliver: .deliver
            }
        }
    }

    package var event: Event
    package var clientIdentifier: [UInt8]
    /// A proven user name; `nil` for an anonymous client.
    package var userName: [UInt8]?
    /// The topic name, or the filter of a SUBSCRIBE.
    package var topic: [UInt8]
    /// The line of the rule that decided; 0 when no rule fitted.
    package var line: UInt32
}
