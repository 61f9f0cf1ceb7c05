/// A scheduled message: the owner's of that name, or else another owner's; `nil` without one.
public struct ShowScheduled: BrokerQuestion {
    public typealias Answer = ScheduledMessage?

    public let name: OwnedName

    public init(name: OwnedName) { self.name = name }
}

/// Scheduled messages in no particular order.
public struct ListScheduled: BrokerQuestion {
    public typealias Answer = ScheduledPage

    /// 0, or the previous page's `next`.
    public let from: UInt32
    public let limit: Int

    public init(from: UInt32, limit: Int) {
        self.from = from
        self.limit = limit
    }
}

/// Changes a scheduled message; answered once that is stored: false without one.
public struct ChangeScheduled: BrokerQuestion {
    public typealias Answer = Bool

    public let name: OwnedName
    public let change: ScheduledChange

    public init(name: OwnedName, change: ScheduledChange) {
        self.name = name
        self.change = change
    }
}
