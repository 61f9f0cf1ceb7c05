/// A client's end of one network connection, in memory or over TCP.
protocol ConformanceWire: AnyObject {
    /// Sends bytes; a connection that the broker has closed swallows them.
    func send(_ bytes: [UInt8]) throws(ConformanceFailure)

    /// What has arrived, waiting up to `milliseconds` for a first byte; empty when nothing came, `nil`
    /// when the broker has closed the connection and all before it was taken.
    func receive(within milliseconds: Int) throws(ConformanceFailure) -> [UInt8]?

    /// Ends the connection in an orderly way and without DISCONNECT; the broker has noticed on return.
    func finish() throws(ConformanceFailure)

    /// Ends the connection at once: over TCP by a reset, which the broker notices in its own time.
    func reset()

    /// Lets time pass: moves the clock in memory, really waits over TCP.
    func pass(milliseconds: Int) throws(ConformanceFailure)

    /// Lets time pass until the broker closes the connection, at most so long; how long it took in
    /// milliseconds, or `nil` when it stayed open.
    func passUntilClosed(within milliseconds: Int) throws(ConformanceFailure) -> Int?
}
