import Structures

/// A pool that ends with its test; whatever the test allocated must be back by then.
final class TestPool {
    let pool = BytePool()

    deinit { pool.destroy() }
}

extension Array where Element == UInt8 {
    func compact(_ pool: BytePool) -> CompactBytes {
        withUnsafeBytes { CompactBytes($0, pool: pool) }
    }
}
