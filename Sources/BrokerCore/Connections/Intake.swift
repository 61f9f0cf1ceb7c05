import BrokerAPI
import MQTTCore
import Structures

/// Acknowledgements that one connection waits for, and whether its packets are read.
///
/// The broker stops reading while too much from this client waits for the store, while the client
/// does not read its acknowledgements, while the store does not accept its next packet, or until the
/// next turn when this one has done its share for the client.
package struct Intake: BitwiseCopyable {
    private enum State: UInt8, BitwiseCopyable {
        case reading
        /// At a limit: `max_unacknowledged_publishes`, `max_unacknowledged_bytes` or
        /// `output_bytes`.
        case paused
        /// The next packet has to wait for the store.
        case awaitingStore
        /// The next packet has to wait for a later turn, see ``WorkBudget``.
        case awaitingTurn
    }

    package private(set) var acknowledgements = AcknowledgementQueue()
    private var state = State.reading

    /// True when the connection's packets are not read.
    package var isPaused: Bool { state != .reading }
    /// True when the connection's next packet waits for the store.
    package var awaitsStore: Bool { state == .awaitingStore }
    /// True when the connection's next packet waits for a later turn.
    package var awaitsTurn: Bool { state == .awaitingTurn }
    /// True when a limit or the store keeps the connection's packets from being read.
    package var isPausedAtLimit: Bool { isPaused && !awaitsTurn }

    // MARK: Pausing

    /// Pauses the connection at a limit and returns that limit; `nil` without a change.
    /// `outputBytes` are unsent; they count only for a publisher.
    package mutating func pauseIfNeeded(
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

    /// Ends a pause at half of each limit; true when the connection is read again.
    package mutating func resumeIfPossible(_ context: borrowing ShardContext, outputBytes: Int)
        -> Bool
    {
        guard state == .paused,
            Int(acknowledgements.requests) <= context.limits.maxUnacknowledgedPublishes / 2,
            acknowledgements.requestBytes <= context.limits.maxUnacknowledgedPublishBytes / 2,
            outputBytes <= context.limits.outputBytes / 2
        else { return false }
        state = .reading
        return true
    }

    /// Pauses the connection because the store does not accept its next packet.
    package mutating func awaitStore() { state = .awaitingStore }

    /// Ends the wait for the store; the caller then asks ``resumeIfPossible(_:outputBytes:)``.
    /// False when the connection did not wait.
    package mutating func storeAccepts() -> Bool {
        guard state == .awaitingStore else { return false }
        state = .paused
        return true
    }

    /// Pauses the connection until a later turn.
    package mutating func awaitTurn() { state = .awaitingTurn }

    /// Ends the wait for a later turn; false when the connection did not wait.
    package mutating func beginTurn() -> Bool {
        guard state == .awaitingTurn else { return false }
        state = .reading
        return true
    }

    // MARK: Acknowledgements

    /// Queues a four-byte acknowledgement; see ``AcknowledgementQueue``.
    package mutating func append(word: UInt32, ticket: UInt64, requestBytes: Int, pool: BytePool) {
        acknowledgements.append(
            word: word, ticket: ticket, requestBytes: requestBytes, pool: pool)
    }

    /// Queues a whole packet and takes over its reference.
    package mutating func append(
        packet: SharedBytes, ticket: UInt64, requestBytes: Int, pool: BytePool
    ) {
        acknowledgements.append(
            packet: packet, ticket: ticket, requestBytes: requestBytes, pool: pool)
    }

    /// Moves acknowledgements whose commits have completed to the output; counts them by kind.
    package mutating func release(
        to output: inout OutputQueue, pool: BytePool, isCommitted: (UInt64) -> Bool
    ) -> (count: Int, types: AcknowledgementQueue.Types) {
        let before = acknowledgements.count
        let types = acknowledgements.release(to: &output, pool: pool, isCommitted: isCommitted)
        return (Int(before - acknowledgements.count), types)
    }

    package mutating func removeAll(in pool: BytePool) { acknowledgements.removeAll(in: pool) }
}
