import CLinux
import Glibc
import Synchronization

/// A bounded queue of messages from any thread to the thread of one reactor, which it wakes.
public final class Mailbox<Message: Sendable>: Sendable {
    private struct State {
        var messages: [Message] = []
        var isClosed = false
    }

    private let state = Mutex(State())
    private let capacity: Int
    let eventDescriptor: CInt

    /// `capacity` bounds the messages that wait; at least 1.
    public init(capacity: Int) throws(SystemError) {
        precondition(capacity > 0, "a mailbox of \(capacity) messages")
        self.capacity = capacity
        eventDescriptor = eventfd(0, CInt(EFD_NONBLOCK | EFD_CLOEXEC))
        guard eventDescriptor >= 0 else {
            throw SystemError(call: "eventfd", subject: "mailbox", code: errno)
        }
    }

    deinit { _ = Glibc.close(eventDescriptor) }

    /// The outcome of ``post(_:isUrgent:)``; a message that was not accepted is the caller's.
    public enum Posted: Sendable {
        case accepted, full, closed
    }

    /// Hands a message over; never waits.
    ///
    /// An urgent message has room of its own, as much again as all others: it may be an answer for which
    /// the reader's thread waits.
    public func post(_ message: Message, isUrgent: Bool = false) -> Posted {
        let (result, wasEmpty) = state.withLock { state -> (Posted, Bool) in
            if state.isClosed { return (.closed, false) }
            let limit = isUrgent ? 2 * capacity : capacity
            if state.messages.count >= limit { return (.full, false) }
            state.messages.append(message)
            return (.accepted, state.messages.count == 1)
        }
        // The reader takes everything at once, so only the first message needs to wake it.
        if wasEmpty { wake() }
        return result
    }

    /// Takes all waiting messages, in order.
    public func take() -> [Message] {
        var counter: UInt64 = 0
        _ = Glibc.read(eventDescriptor, &counter, 8)
        return state.withLock { state in
            var messages: [Message] = []
            swap(&messages, &state.messages)
            return messages
        }
    }

    /// Accepts no message from now on, and returns those that still wait.
    public func close() -> [Message] {
        state.withLock { $0.isClosed = true }
        return take()
    }

    /// Gives the reader a turn, without a message.
    public func wake() {
        var one: UInt64 = 1
        _ = Glibc.write(eventDescriptor, &one, 8)
    }
}
