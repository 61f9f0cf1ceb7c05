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

/// The work of a kind of batch.
protocol BatchWork: Sendable {
    associatedtype Item: BatchItem
    associatedtype Outcomes: Sendable

    /// What a line of the caller asks for, checked.
    func prepare(_ line: UnsafeRawBufferPointer, _ caller: Caller?) throws(Problem) -> Item
    /// Carries the items out, in order.
    func carryOut(_ items: [Item], for caller: Caller?) async -> Outcomes
    /// Appends the result of an item, by its index among those that were carried out, and returns how
    /// it ended.
    func write(
        _ outcomes: Outcomes, _ index: Int, of item: Item, line: Int, to results: inout ByteBuffer
    ) -> LineEnd
}

/// How a line of a batch ended.
enum LineEnd: Sendable {
    case done
    /// The line repeats one that was carried out before.
    case repeated
    case failed
}

/// One batch under way: reads lines, carries out what they ask for in groups, and tells the results,
/// in order.
///
/// The reader stops while a group is under way and the next one is full; with results for each line
/// the writer waits for the client to take them. So a batch holds at most three groups, however long
/// it is.
struct BatchStream<Work: BatchWork>: Sendable {
    let work: Work
    let source: BodyStream
    let caller: Caller?
    let maximumLineBytes: Int

    /// Answers each line with its result; throws only when the connection is lost.
    func answerLines(_ writer: inout any ResponseBodyWriter) async throws {
        try await run { group, refusal in
            try await writer.write(await results(of: group, refusal))
        }
        try await writer.finish(nil)
    }

    /// Carries all lines out.
    ///
    /// - Returns: How they ended, once the body has.
    func summary() async -> BatchSummary {
        var summary = BatchSummary()
        // Nothing is written, so nothing is thrown.
        try? await run { group, refusal in
            _ = await results(of: group, refusal) { end, result in summary.add(end, &result) }
        }
        return summary
    }

    /// Reads the lines in groups, and has each group answered.
    private func run(
        _ answer: (LineGroup<Work.Item>, Problem?) async throws -> Void
    ) async throws {
        let lines = BatchLines<Work.Item>()
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
                try await answer(group, refusal)
                if refusal != nil { break }
                if !lines.isWaiting { signal(isBusy: false) }
            }
        }
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
    private func read(into lines: BatchLines<Work.Item>) async {
        var splitter = LineSplitter(maximumBytes: maximumLineBytes)
        var group = LineGroup<Work.Item>()
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
                throw connectionLost
            }
            _ = splitter.finish { add($1, line: $0, &group) }
        } catch {
            group.append(error as? Problem ?? connectionLost, line: splitter.count + 1)
        }
        await lines.put(group)
    }

    /// Takes lines from a part of the body; true when the group is full and more may follow.
    private func take(
        from part: ByteBuffer, _ offset: inout Int, _ splitter: inout LineSplitter,
        _ group: inout LineGroup<Work.Item>
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
        _ line: UnsafeRawBufferPointer?, line number: Int, _ group: inout LineGroup<Work.Item>
    ) {
        do throws(Problem) {
            guard let line else { throw lineTooLong }
            group.append(try work.prepare(line, caller), line: number)
        } catch {
            group.append(error, line: number)
        }
    }

    private var lineTooLong: Problem {
        Problem(
            .tooLarge, "The line is longer than \(maximumLineBytes) bytes.",
            fix: "Send less in it, or raise limits.max_packet.")
    }

    private var connectionLost: Problem {
        Problem(
            .malformedRequest, "The connection ended in the middle of the request.",
            fix: "Send the lines that were not answered again.")
    }

    // MARK: Answering

    /// Carries out the items of a group, unless they are refused.
    ///
    /// - Parameters:
    ///   - group: The lines.
    ///   - refusal: Why they are refused.
    ///   - each: Gets the end and the result of each line, and may take the result away.
    /// - Returns: The results of the lines.
    private func results(
        of group: LineGroup<Work.Item>, _ refusal: Problem?,
        _ each: (LineEnd, inout ByteBuffer) -> Void = { _, _ in }
    ) async -> ByteBuffer {
        let outcomes = refusal == nil ? await work.carryOut(group.items, for: caller) : nil
        var results = ByteBuffer()
        results.reserveCapacity(group.lines.count * 192)
        var next = 0
        for line in group.lines {
            var end = LineEnd.failed
            switch line.content {
            case .problem(let problem): results.write(problem, line: line.number)
            case .item:
                if let outcomes {
                    end = work.write(
                        outcomes, next, of: group.items[next], line: line.number, to: &results)
                } else if let refusal {
                    results.write(refusal, line: line.number)
                }
                next += 1
            }
            each(end, &results)
        }
        return results
    }
}
