/// The shard's side of a sender of wakes: what a sender may ask of the broker.
public protocol WakeFeed: Sendable {
    /// Asks for owed wakes of one kind of device; a further demand takes the place of the one before.
    /// A broker under load may lose a demand, so a sender asks again after some seconds.
    func next(_ kind: Device.Kind, _ demand: WakeDemand)
    /// Answers wakes; false when the broker is too busy to take the answers now, which the sender
    /// keeps then. A wake without an answer is withdrawn after five minutes and handed out again.
    func answer(_ answers: [WakeAnswer]) -> Bool
}

/// What a sender takes now, of the wakes of its kind of device.
public struct WakeDemand: Sendable {
    /// A bound for the wakes of one of Apple's services, or of one app of it: what a sender in
    /// trouble there leaves with the broker, while it goes on elsewhere.
    public struct Limit: Sendable, Equatable {
        public var environment: Device.Environment
        /// `nil`: all apps together.
        public var bundle: String?
        public var most: Int

        public init(_ environment: Device.Environment, bundle: String?, most: Int) {
            self.environment = environment
            self.bundle = bundle
            self.most = most
        }

        public static func == (left: Limit, right: Limit) -> Bool {
            left.environment == right.environment && left.most == right.most
                && (left.bundle ?? "").utf8.elementsEqual((right.bundle ?? "").utf8)
        }
    }

    public var most: Int
    public var limits: [Limit]
    /// Called at most once, on the shard's thread, with one to `most` wakes as soon as there are
    /// any, and never after a further demand. Each wake that is taken must be answered, in any order.
    public var take: @Sendable ([Wake]) -> Void
    /// Called on the shard's thread, also after `take`, with hand-outs that are of no use any more:
    /// the client has come back, or its device is gone. What the sender has not sent yet it gives
    /// back; what it has, it answers as any other.
    public var withdraw: @Sendable ([HandOut]) -> Void

    public init(
        most: Int, limits: [Limit] = [], take: @escaping @Sendable ([Wake]) -> Void,
        withdraw: @escaping @Sendable ([HandOut]) -> Void = { _ in }
    ) {
        self.most = most
        self.limits = limits
        self.take = take
        self.withdraw = withdraw
    }
}
