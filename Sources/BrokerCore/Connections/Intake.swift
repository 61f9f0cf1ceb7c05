import BrokerAPI
import MQTTCore
import Structures

/// The acknowledgements that one connection is owed, and whether its packets are read meanwhile.
///
/// A client is not read while too much of what it sent waits for the store, while it does not take the
/// acknowledgements that it got, or while its next packet needs a store that takes nothing new.
struct Intake: BitwiseCopyable {
    private enum State: UInt8, BitwiseCopyable {
        case reading
        /// At `limits.max_unacknowledged_publishes`, `limits.max_unacknowledged_bytes` or
        /// `limits.output_bytes`.
        case paused
        /// The next packet has to wait for the store.
        case awaitingStore
    }

    private var state = State.reading
    private(set) var acknowledgements = AcknowledgementQueue()

    /// Whether the connection's packets are not read at present.
    var isPaused: Bool { state != .reading }
    /// Whether the connection's next packet waits for the store.
    var awaitsStore: Bool { state == .awaitingStore }

    // MARK: Pausing

    /// Pauses the connection when it has met a limit; returns that limit, `nil` when nothing changes.
    /// `outputBytes` are unsent on the connection; they count only for a publisher.
    mutating func pauseIfNeeded(
        _ context: borrowing ShardContext, outputBytes: Int, isPublisher: Bool
    ) -> Limit? {
        guard state == .reading else { return nil }
        if Int(acknowledgements.requests) >= context.limits.maxUnacknowledgedPublishes {
            state = .paused
            return .maxUnacknowledgedPublishes
        }
        if acknowledgements.requestBytes >= context.limits.maxUnacknowledgedPublishBytes {
            state = .paused
            return .maxUnacknowledgedBytes
        }
        guard isPublisher, outputBytes >= context.limits.outputBytes else { return nil }
        state = .paused
        return .outputBytes
    }

    /// Ends a pause at half of each limit; true when the connection is read from now on.
    mutating func resumeIfPossible(_ context: borrowing ShardContext, outputBytes: Int) -> Bool {
        guard state == .paused,
            Int(acknowledgements.requests) <= context.limits.maxUnacknowledgedPublishes / 2,
            acknowledgements.requestBytes <= context.limits.maxUnacknowledgedPublishBytes / 2,
            outputBytes <= context.limits.outputBytes / 2
        else { return false }
        state = .reading
        return true
    }

    /// The next packet needs the store, which takes nothing new.
    mutating func awaitStore() { state = .awaitingStore }

    /// The store takes messages again; ``resumeIfPossible(_:outputBytes:)`` decides what follows. False
    /// when the connection did not wait for the store.
    mutating func storeAccepts() -> Bool {
        guard state == .awaitingStore else { return false }
        state = .paused
        return true
    }

    // MARK: Acknowledgements

    /// Queues a four-byte acknowledgement; see ``AcknowledgementQueue``.
    mutating func append(word: UInt32, ticket: UInt64, requestBytes: Int, pool: BytePool) {
        acknowledgements.append(
            word: word, ticket: ticket, requestBytes: requestBytes, pool: pool)
    }

    /// Queues a whole packet, whose reference the queue takes over.
    mutating func append(packet: SharedBytes, ticket: UInt64, requestBytes: Int, pool: BytePool) {
        acknowledgements.append(
            packet: packet, ticket: ticket, requestBytes: requestBytes, pool: pool)
    }

    /// Moves the acknowledgements that may leave to the output; returns how many, and of which kinds.
    mutating func release(
        to output: inout OutputQueue, pool: BytePool, isCommitted: (UInt64) -> Bool
    ) -> (count: Int, types: AcknowledgementQueue.Types) {
        let before = acknowledgements.count
        let types = acknowledgements.release(to: &output, pool: pool, isCommitted: isCommitted)
        return (Int(before - acknowledgements.count), types)
    }

    /// The connection closes.
    mutating func removeAll(in pool: BytePool) { acknowledgements.removeAll(in: pool) }
}
