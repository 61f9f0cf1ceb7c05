/// The most alerts of a device in a time, which begins with the first alert after the one before.
public struct WakeCap: Sendable, Equatable, BitwiseCopyable {
    /// 1 to 1,000.
    public var count: UInt16
    public var milliseconds: Int64

    public init(count: UInt16, milliseconds: Int64) {
        self.count = count
        self.milliseconds = milliseconds
    }
}
