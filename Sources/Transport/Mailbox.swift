import CLinux
import Glibc
import Synchronization
import SystemFiles

/// A bounded queue of messages from any thread to a reactor's thread, which they wake.
public final class Mailbox<Message: Sendable>: Sendable {
    private struct State {
        var messages: [Message] = []
        var isClosed = false
    }

    private let state = Mutex(State())
    private let capacity: Int
    let eventDescriptor: CInt

    /// `capacity` is the largest number of waiting messages; at least 1.
    public init(capacity: Int) throws(SystemError) {
        precondition(capacity > 0, "a mailbox of \(capacity) messages")
        self.capacity = capacity
        eventDescriptor = eventfd(0, CInt(EFD_NONBLOCK | EFD_CLOEXEC))
        guard eventDescriptor >= 0 else {
            throw SystemError(call: "eventfd", subject: "mailbox", code: errno)
        }
    }

    deinit { _ = Glibc.close(eventDescriptor) }

    /// The result of ``post(_:isUrgent:)``; the caller keeps a message that was not accepted.
    public enum Posted: Sendable {
        case accepted, full, closed
    }

    /// Adds a message without waiting.
    ///
    /// Urgent messages have a queue bound of their own, of the same size: the reader's thread may
    /// be waiting for such an answer.
    public func post(_ message: Message, isUrgent: Bool = false) -> Posted {
        let (result, wasEmpty) = state.withLock { state -> (Posted, Bool) in
            if state.isClosed { return (.closed, false) }
            let limit = isUrgent ? 2 * capacity : capacity
            if state.messages.count >= limit { return (.full, false) }
            state.messages.append(message)
            return (.accepted, state.messages.count == 1)
        }
        // The reader takes all messages at once, so only the first needs to wake it.
        if wasEmpty { wake() }
        return result
    }

    /// Takes all waiting messages, in order.
    public func take() -> [Message] {
        var counter: UInt64 = 0
        _ = retrying { Glibc.read(eventDescriptor, &counter, 8) }
        return state.withLock { state in
            var messages: [Message] = []
            swap(&messages, &state.messages)
            return messages
        }
    }

    /// Rejects further messages, and returns those that still wait.
    public func close() -> [Message] {
        state.withLock { $0.isClosed = true }
        return take()
    }

    /// Wakes the reader without a message.
    public func wake() {
        var one: UInt64 = 1
        // Without it the reader may sleep beside its messages.
        _ = retrying { Glibc.write(eventDescriptor, &one, 8) }
    }
}
