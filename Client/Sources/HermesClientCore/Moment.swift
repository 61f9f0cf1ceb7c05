/// A point in time, on both clocks that the client needs.
package struct Moment: Hashable, Sendable {
    /// Milliseconds of a clock that never goes back; its start is anywhere. All deadlines are on
    /// this clock. On Apple's systems it must go on while the device sleeps.
    package var monotonicMilliseconds: Int64
    /// Milliseconds since 1970. Only what survives a restart of the program is measured by it.
    package var unixMilliseconds: Int64

    package init(monotonicMilliseconds: Int64, unixMilliseconds: Int64) {
        self.monotonicMilliseconds = monotonicMilliseconds
        self.unixMilliseconds = unixMilliseconds
    }
}
