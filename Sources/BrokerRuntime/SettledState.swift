/// Memory above the limit that nothing can free: sessions, subscriptions, retained messages, and
/// connected clients that read.
///
/// It must not keep newcomers out for as long as it lives. So while it lasts, it is not added to,
/// and the limit for all else, connections above all, lies an eighth of the configured one above
/// it. That is done once, not again and again, so that memory stays bounded.
struct SettledState: Equatable {
    /// The memory in use when nothing more could be freed; `nil` while there is enough.
    private var bytes: Int?

    var isSettled: Bool { bytes != nil }

    /// The limit that counts now, where `configured` is that of the configuration.
    func limit(_ configured: Int) -> Int {
        bytes.map { max(configured, $0) + configured / 8 } ?? configured
    }

    /// Notes that nothing can be freed; false when that was known already, or there is enough.
    mutating func begins(used: Int, limit: Int) -> Bool {
        guard bytes == nil, used >= MemoryPressure.newcomers.endBytes(of: limit) else {
            return false
        }
        bytes = used
        return true
    }

    /// Notes a measurement; true when it ends the state.
    mutating func ends(used: Int, limit: Int) -> Bool {
        guard bytes != nil, used < MemoryPressure.newcomers.endBytes(of: limit) else {
            return false
        }
        bytes = nil
        return true
    }
}
