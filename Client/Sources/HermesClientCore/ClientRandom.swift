/// The source of the client's random numbers, injected so that a run can be repeated.
package protocol ClientRandom: Sendable {
    /// A uniform number of `range`.
    mutating func number(in range: ClosedRange<Int64>) -> Int64
}

/// The system's random numbers.
package struct SystemRandom: ClientRandom {
    package init() {}

    package mutating func number(in range: ClosedRange<Int64>) -> Int64 { .random(in: range) }
}
