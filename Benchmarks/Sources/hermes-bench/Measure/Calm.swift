/// Waits until a broker has nothing left to do.
enum Calm {
    private static var interval: UInt64 { 50_000_000 }
    /// An idle broker may spend so much CPU in one interval.
    private static var idleNanoseconds: UInt64 { 1_000_000 }

    /// Returns once the broker was idle for `intervals` of 50 ms in a row, or after `atMost`
    /// nanoseconds; the connections are served meanwhile.
    static func await<Handler: PacketHandler & ~Copyable>(
        _ process: BrokerProcess, intervals: Int, atMost: UInt64, _ sockets: inout ClientSockets,
        _ handler: inout Handler
    ) throws(BenchFailure) {
        let deadline = Clock.nanoseconds() + atMost
        var used = try process.cpuNanoseconds()
        var idle = 0
        while idle < intervals, Clock.nanoseconds() < deadline {
            let next = Clock.nanoseconds() + interval
            while Clock.nanoseconds() < next {
                try sockets.turn(atMost: Int64(interval), &handler)
            }
            let sample = try process.cpuNanoseconds()
            idle = sample - used < idleNanoseconds ? idle + 1 : 0
            used = sample
        }
    }
}
