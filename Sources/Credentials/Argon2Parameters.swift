/// The cost of one Argon2id computation.
///
/// The bounds are checked on every value, so a hash read from a file can neither exhaust memory
/// nor block a verification thread: one computation fills at most 1 GiB in all.
package struct Argon2Parameters: Hashable, Sendable {
    /// KiB of memory; 8 per lane to 262,144 (256 MiB).
    package let memoryKiB: UInt32
    /// Passes over the memory; 1 to 64.
    package let iterations: UInt32
    /// Lanes, each of which may use a thread; 1 to 8.
    package let parallelism: UInt32

    package static let maximumMemoryKiB: UInt32 = 262_144
    package static let maximumIterations: UInt32 = 64
    package static let maximumParallelism: UInt32 = 8
    /// The bound on memory times passes, in KiB.
    package static let maximumWorkKiB: UInt64 = 1_048_576

    /// The cost for new passwords: 19 MiB, 2 passes, 1 lane (docs/decisions/0005-argon2.md).
    package static let standard = Argon2Parameters(
        uncheckedMemoryKiB: 19_456, iterations: 2, parallelism: 1)

    /// `nil` if a value is out of its bounds.
    package init?(memoryKiB: UInt32, iterations: UInt32, parallelism: UInt32) {
        guard (1...Self.maximumParallelism).contains(parallelism),
            (1...Self.maximumIterations).contains(iterations),
            (8 * parallelism...Self.maximumMemoryKiB).contains(memoryKiB),
            UInt64(memoryKiB) * UInt64(iterations) <= Self.maximumWorkKiB
        else { return nil }
        self.init(
            uncheckedMemoryKiB: memoryKiB, iterations: iterations, parallelism: parallelism)
    }

    private init(uncheckedMemoryKiB: UInt32, iterations: UInt32, parallelism: UInt32) {
        memoryKiB = uncheckedMemoryKiB
        self.iterations = iterations
        self.parallelism = parallelism
    }
}

extension Argon2Parameters: CustomStringConvertible {
    /// The form that an encoded hash has: `m=19456,t=2,p=1`.
    package var description: String { "m=\(memoryKiB),t=\(iterations),p=\(parallelism)" }
}
