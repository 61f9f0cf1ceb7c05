import BrokerAPI

/// A denial by the access rules, for the counters.
public enum AccessRefusal: UInt8, CountLabel {
    /// A PUBLISH; its connection was closed.
    case publish
    /// A filter of a SUBSCRIBE; it got 0x80.
    case subscribe
    /// A message that matches a subscription of a client that may not read its topic.
    case deliver
    /// A will at the time of its publication.
    case will

    public var name: String {
        switch self {
        case .publish: "publish"
        case .subscribe: "subscribe"
        case .deliver: "deliver"
        case .will: "will"
        }
    }
}

/// A decision by the access rules, for the log.
public struct AccessReport: Sendable {
    public enum Event: Hashable, Sendable {
        case publish, subscribe, will
        /// A filter was granted although the client may read only some of its topics.
        case narrowed
        /// A message was withheld from a matching subscription.
        case withheld
        /// A queued message was dropped.
        case deliver

        /// The denial to count; `nil` for a granted filter.
        public var refusal: AccessRefusal? {
            switch self {
            case .publish: .publish
            case .subscribe: .subscribe
            case .will: .will
            case .narrowed: nil
            case .withheld, .deliver: .deliver
            }
        }
    }

    public var event: Event
    public var clientID: [UInt8]
    /// A user name proven by password or certificate; `nil` for an anonymous client.
    public var userName: [UInt8]?
    /// The topic name, or the filter of a SUBSCRIBE.
    public var topic: [UInt8]
    /// The line of the deciding rule; 0 when no rule fitted.
    public var line: UInt32
}
