import BrokerAPI
import Hummingbird
import NIOCore
import RequestText

/// The body of a request that is read while it is answered.
struct BodyStream: Sendable {
    let body: RequestBody
    /// From Content-Length; `nil` for a chunked body.
    let declaredBytes: Int?
    let channel: any Channel
    /// Throws when the caller may not use the route any more, as after its token was revoked.
    let admitAgain: @Sendable () throws(Problem) -> Void
}

/// Fired into a connection's pipeline by the answer to a stream: true while lines are being
/// published, and the client need not send anything.
struct StreamIsBusy: Sendable {
    var isBusy: Bool
}

/// One batch under way: reads lines, publishes their messages in groups, and writes a result for
/// each line, in order.
///
/// The reader stops while a group is under way and the next one is full; the writer waits for the
/// client to take its results. So a batch holds at most three groups, however long it is.
struct BatchStream: Sendable {
    /// Makes a message of the caller from one line.
    typealias Prepare =
        @Sendable (UnsafeRawBufferPointer, Caller?) throws(Problem) -> PreparedMessage

    let publisher: Publisher
    let source: BodyStream
    let caller: Caller?
    let maximumLineBytes: Int
    let prepare: Prepare

    /// Answers the lines; throws only when the connection is lost.
    func run(_ writer: inout any ResponseBodyWriter) async throws {
        let lines = BatchLines()
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            // The reader may be waiting, for the writer or for the client.
            defer {
                lines.end()
                tasks.cancelAll()
            }
            var checked = ContinuousClock.now
            tasks.addTask {
                await read(into: lines)
                lines.end()
            }
            while let group = await lines.take() {
                signal(isBusy: true)
                let refusal = refusal(since: &checked)
                try await writer.write(await publish(group, refusal))
                if refusal != nil { break }
                if !lines.isWaiting { signal(isBusy: false) }
            }
        }
        try await writer.finish(nil)
    }

    /// Asks again at most once a second, since a batch may go on for hours.
    private func refusal(since checked: inout ContinuousClock.Instant) -> Problem? {
        let now = ContinuousClock.now
        guard now - checked >= .seconds(1) else { return nil }
        checked = now
        do throws(Problem) {
            try source.admitAgain()
            return nil
        } catch {
            return error
        }
    }

    private func signal(isBusy: Bool) {
        source.channel.triggerUserOutboundEvent(StreamIsBusy(isBusy: isBusy), promise: nil)
    }

    // MARK: Reading

    /// Reads to the end of the body. If it ends too early, the line after the last says why.
    private func read(into lines: BatchLines) async {
        var splitter = LineSplitter(maximumBytes: maximumLineBytes)
        var group = LineGroup()
        do {
            var byteCount = 0
            for try await part in source.body {
                byteCount += part.readableBytes
                var offset = 0
                while take(from: part, &offset, &splitter, &group) {
                    await lines.put(group)
                    group = LineGroup()
                }
                if !group.isEmpty {
                    await lines.put(group)
                    group = LineGroup()
                }
            }
            // A broken connection ends the body without an error, so the length must be checked.
            if let declared = source.declaredBytes, byteCount != declared {
                throw Self.connectionLost
            }
            _ = splitter.finish { add($1, line: $0, &group) }
        } catch {
            group.append(error as? Problem ?? Self.connectionLost, line: splitter.count + 1)
        }
        await lines.put(group)
    }

    /// Takes lines from a part of the body; true when the group is full and more may follow.
    private func take(
        from part: ByteBuffer, _ offset: inout Int, _ splitter: inout LineSplitter,
        _ group: inout LineGroup
    ) -> Bool {
        part.withUnsafeReadableBytes { bytes in
            while !group.isFull {
                let line: Void? = splitter.next(in: bytes, from: &offset) {
                    add($1, line: $0, &group)
                }
                if line == nil { return false }
            }
            return true
        }
    }

    private func add(
        _ line: UnsafeRawBufferPointer?, line number: Int, _ group: inout LineGroup
    ) {
        do throws(Problem) {
            guard let line else { throw lineTooLong }
            group.append(try prepare(line, caller), line: number)
        } catch {
            group.append(error, line: number)
        }
    }

    private var lineTooLong: Problem {
        Problem(
            .tooLarge, "The line is longer than \(maximumLineBytes) bytes.",
            fix: "Send less in it, or raise limits.max_packet.")
    }

    private static let connectionLost = Problem(
        .malformedRequest, "The connection ended in the middle of the request.",
        fix: "Send the lines that were not answered again.")

    // MARK: Answering

    /// Publishes the messages of a group, unless they are refused; returns the results of its lines.
    private func publish(_ group: LineGroup, _ refusal: Problem?) async -> ByteBuffer {
        let outcomes: Result<[PublishOutcome], Problem> =
            if let refusal {
                .failure(refusal)
            } else {
                await publisher.publish(group.publications, for: caller)
            }
        var results = ByteBuffer()
        results.reserveCapacity(group.lines.count * 192)
        var next = 0
        for line in group.lines {
            switch line.content {
            case .problem(let problem): results.write(problem, line: line.number)
            case .message(let id):
                do throws(Problem) {
                    let outcome = try outcomes.get()[next]
                    results.write(try publisher.result(id, outcome), line: line.number)
                } catch {
                    results.write(error, line: line.number)
                }
                next += 1
            }
        }
        return results
    }
}
