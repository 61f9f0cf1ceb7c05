/// Where state lives that outlasts a connection; written by tickets, never waited for.
///
/// One thread submits and takes completions. A store may complete tickets late and in any order;
/// whoever depends on one waits for exactly that one. Stores whose work happens on a thread of
/// their own wake the submitter by the closure that they were made with.
public protocol Store: AnyObject {
    /// Whether records are kept at all; a store that keeps none gets batches without bytes.
    var isRecording: Bool { get }

    /// Takes a turn's writes over; returns at once.
    func submit(_ batch: borrowing WriteBatch)

    /// Appends the tickets that have completed since the last call: everything they stand for is as
    /// durable as the store's configuration promises.
    func takeCompletions(_ tickets: inout [ClosedRange<UInt64>])
}
