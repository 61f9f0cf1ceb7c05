import BrokerAPI
import NIOCore

/// A message of an HTTP caller that has been checked.
struct PreparedMessage: BatchItem {
    var publication: Publication
    var id: MessageID
    /// Why it cannot be published unless it was before; `nil` for nothing.
    var obstacle: Problem?

    var byteCount: Int { publication.topic.count + publication.payload.count }
}

/// A batch that publishes a message for each line.
struct MessageBatch: BatchWork {
    /// Makes a message of the caller from one line.
    typealias Make =
        @Sendable (UnsafeRawBufferPointer, Caller?) throws(Problem) -> PreparedMessage

    let publisher: Publisher
    let make: Make

    func prepare(
        _ line: UnsafeRawBufferPointer, _ caller: Caller?
    ) throws(Problem) -> PreparedMessage {
        let message = try make(line, caller)
        try publisher.check(message.publication, of: caller)
        return message
    }

    func carryOut(
        _ messages: [PreparedMessage], for caller: Caller?
    ) async -> [Result<PublishOutcome, Problem>] {
        await publisher.publish(messages, for: caller)
    }

    func write(
        _ outcomes: [Result<PublishOutcome, Problem>], _ index: Int, of message: PreparedMessage,
        line: Int, to results: inout ByteBuffer
    ) -> LineEnd {
        do throws(Problem) {
            let result = try publisher.result(message.id, outcomes[index].get())
            results.write(result, line: line)
            return result.duplicate ? .repeated : .done
        } catch {
            results.write(error, line: line)
            return .failed
        }
    }
}
