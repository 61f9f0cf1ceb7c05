import CBench

/// The limits of this process.
enum ProcessLimits {
    /// Standard streams, epoll and a few to spare.
    private static var otherDescriptors: Int { 16 }

    /// Raises the descriptor limit as far as it goes; throws when that is too few.
    static func check(connections: Int) throws(BenchFailure) {
        let limit = bench_prepare_process()
        guard connections + otherDescriptors <= Int(clamping: limit) else {
            throw BenchFailure(
                "\(connections) connections need \(connections + otherDescriptors) descriptors, and "
                    + "this process may open \(limit). Raise the limit (ulimit -n) or ask for fewer."
            )
        }
    }
}
