/// A seeded generator with the same sequence everywhere, so that a failure can be replayed.
///
/// Sebastiano Vigna's splitmix64: a counter of odd step, mixed by two multiplications.
package struct SplitMix64: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// All seeds are equally good, including 0.
    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A number from `range`, nearly uniform; the range must not be empty.
    package mutating func number(in range: ClosedRange<Int>) -> Int {
        Int.random(in: range, using: &self)
    }

    /// True once in `count` calls on average; `count` is at least 1.
    package mutating func once(in count: Int) -> Bool { number(in: 1...count) == 1 }

    /// One of `values`, which must not be empty.
    package mutating func pick<Values: RandomAccessCollection>(_ values: Values) -> Values.Element {
        precondition(!values.isEmpty, "nothing to pick from")
        let offset = number(in: 0...values.count - 1)
        return values[values.index(values.startIndex, offsetBy: offset)]
    }

    /// `count` uniform bytes.
    package mutating func bytes(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        while bytes.count < count {
            withUnsafeBytes(of: next().littleEndian) { word in
                bytes.append(contentsOf: word.prefix(count - bytes.count))
            }
        }
        return bytes
    }
}
