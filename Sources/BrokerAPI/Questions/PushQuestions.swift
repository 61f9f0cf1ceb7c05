/// Begins or schedules a push; answered once that is stored.
public struct StartPush: BrokerQuestion {
    public typealias Answer = PublishOutcome

    public let request: PushRequest

    public init(request: PushRequest) { self.request = request }
}

/// The clients that a push would reach now.
public struct PreviewPush: BrokerQuestion {
    public typealias Answer = PushPreview

    public let target: PushTarget

    public init(target: PushTarget) { self.target = target }
}

/// A push: the owner's of that name, or else another owner's; `nil` without one.
public struct ShowPush: BrokerQuestion {
    public typealias Answer = PushStatus?

    public let name: OwnedName

    public init(name: OwnedName) { self.name = name }
}

/// Pushes, the youngest first.
public struct ListPushes: BrokerQuestion {
    public typealias Answer = PushPage

    /// The previous page's `next`, or `nil`.
    public let below: UInt64?
    public let limit: Int

    public init(below: UInt64?, limit: Int) {
        self.below = below
        self.limit = limit
    }
}

/// Cancels what has not left of a push; answered once that is stored with what has: `nil` without
/// one.
public struct CancelPush: BrokerQuestion {
    public typealias Answer = PushStatus?

    public let name: OwnedName

    public init(name: OwnedName) { self.name = name }
}
