/// The shard's side of a sender of wakes: what a sender may ask of the broker.
public protocol WakeFeed: Sendable {
    /// Asks for owed wakes of one kind of device; `take` is called at most once, on the shard's thread,
    /// with one to `most` of them as soon as there are any, and never after a further call. Each wake
    /// that is taken must be answered, in any order. A broker under load may lose a request, so a
    /// sender asks again after some seconds.
    func next(_ kind: Device.Kind, most: Int, take: @escaping @Sendable ([Wake]) -> Void)
    /// Answers wakes. A wake whose answer is lost is handed out again after three minutes.
    func answer(_ answers: [WakeAnswer])
}
