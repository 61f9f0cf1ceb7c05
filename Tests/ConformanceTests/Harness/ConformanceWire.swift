/// A client's end of one network connection, in memory or over TCP.
protocol ConformanceWire: AnyObject {
    /// Sends bytes, which are dropped if the broker has closed the connection.
    func send(_ bytes: [UInt8]) throws(ConformanceFailure)

    /// Received bytes, waiting up to `milliseconds` for the first; empty without any, `nil` when
    /// the broker has closed the connection and all earlier bytes were taken.
    func receive(within milliseconds: Int) throws(ConformanceFailure) -> [UInt8]?

    /// Closes without DISCONNECT; the broker has noticed on return.
    func finish() throws(ConformanceFailure)

    /// Breaks the connection: over TCP by a reset, which the broker notices later.
    func reset()

    /// Advances the time: the clock in memory, a real wait over TCP.
    func pass(milliseconds: Int) throws(ConformanceFailure)

    /// Advances the time until the broker closes the connection; the milliseconds that it took, or
    /// `nil` when it stayed open.
    func passUntilClosed(within milliseconds: Int) throws(ConformanceFailure) -> Int?
}
