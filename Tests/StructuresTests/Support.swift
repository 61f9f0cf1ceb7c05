import Structures

/// A pool freed at the end of its test, when all memory must have been returned.
final class TestPool {
    let pool = BytePool()

    deinit { pool.destroy() }
}

extension Array where Element == UInt8 {
    func compact(_ pool: BytePool) -> CompactBytes {
        withUnsafeBytes { CompactBytes($0, pool: pool) }
    }
}
