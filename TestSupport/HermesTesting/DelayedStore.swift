import Store

/// A store in memory that completes each ticket when the test says so, in any order.
package final class DelayedStore: Store {
    private struct Row {
        var message: StoreRecord
        var messageID: [UInt8]
        var queued: StoreRecord
        var isReleased = false
        var shared: [UInt8] = []
    }

    /// All submitted groups, in order.
    package private(set) var groups: [(ticket: UInt64, records: [StoreRecord])] = []
    /// Tickets that have not completed.
    package private(set) var pending: [UInt64] = []
    private var ready: [UInt64] = []
    private var queues: [UInt64: [UInt64: Row]] = [:]
    private var reads: [QueueSlice] = []
    /// Completes every ticket at once, like a fast disk.
    package var isImmediate = false
    /// While true, reads wait.
    package var holdsReads = false
    /// While true, reads that are answered fail and bring nothing.
    package var failsReads = false
    /// True while an answer to a read is outstanding.
    package var isReading: Bool { !reads.isEmpty }
    package var isAccepting = true
    /// Falls with what is submitted, unless it is without bound.
    package var room = Int.max

    package init() {}

    package var isRecording: Bool { true }

    package func submit(_ batch: inout WriteBatch) {
        if room != .max { room -= batch.growth }
        for (ticket, records) in batch.groups() {
            guard let ticket else { preconditionFailure("records were submitted without a ticket") }
            groups.append((ticket, records))
            apply(records)
            if isImmediate { ready.append(ticket) } else { pending.append(ticket) }
        }
        batch.clear()
    }

    package func takeCompletions(_ tickets: inout [ClosedRange<UInt64>]) {
        tickets.append(contentsOf: ready.map { $0...$0 })
        ready.removeAll()
    }

    package func complete(_ ticket: UInt64) {
        guard let index = pending.firstIndex(of: ticket) else {
            preconditionFailure("ticket \(ticket) is not pending")
        }
        pending.remove(at: index)
        ready.append(ticket)
    }

    package func completeAll() {
        ready.append(contentsOf: pending)
        pending.removeAll()
    }

    /// All records so far.
    package var records: [StoreRecord] { groups.flatMap(\.records) }

    /// Positions in a session's queue, ascending.
    package func positions(of session: UInt64) -> [UInt64] {
        (queues[session] ?? [:]).keys.sorted()
    }

    // MARK: Queues

    package func read(_ request: QueueRead) { reads.append(answer(request)) }

    package func takeSlices(_ slices: inout [QueueSlice]) {
        guard !holdsReads else { return }
        slices.append(
            contentsOf: failsReads
                ? reads.map {
                    QueueSlice(
                        request: $0.request, next: $0.request.from, bytes: [],
                        failure: StoreFailure(operation: "read", path: "test", errno: 5))
                } : reads)
        reads.removeAll()
    }

    private func apply(_ records: [StoreRecord]) {
        var messages: [UInt64: StoreRecord] = [:]
        var messageIDs: [UInt64: [UInt8]] = [:]
        for record in records {
            switch record {
            case .message(let number, _, _, _, _, _): messages[number] = record
            case .named(let number, let messageID): messageIDs[number] = messageID
            case .queued(let session, let position, let message, _, _, _):
                guard let content = messages[message] else {
                    preconditionFailure("message \(message) is not in the group that refers to it")
                }
                queues[session, default: [:]][position] = Row(
                    message: content, messageID: messageIDs[message] ?? [], queued: record)
            case .shared(let session, let position, let filter):
                queues[session]?[position]?.shared = filter
            case .released(let session, let position):
                guard case .queued(_, _, _, 2, _, _)? = queues[session]?[position]?.queued else {
                    continue
                }
                queues[session]?[position]?.isReleased = true
            case .finished(let session, let position): queues[session]?[position] = nil
            case .sessionRemoved(let session): queues[session] = nil
            default: continue
            }
        }
    }

    private func answer(_ request: QueueRead) -> QueueSlice {
        let rows = (queues[request.session] ?? [:])
            .filter { $0.key >= request.from && $0.key < request.below }
            .sorted { $0.key < $1.key }
        var batch = WriteBatch(isRecording: true)
        for (position, row) in rows.prefix(request.maxMessages) {
            append(row, request.session, position, to: &batch)
        }
        let next = rows.count > request.maxMessages ? rows[request.maxMessages].key : request.below
        return QueueSlice(request: request, next: next, bytes: batch.takeBytes(leaving: []))
    }

    private func append(
        _ row: Row, _ session: UInt64, _ position: UInt64, to batch: inout WriteBatch
    ) {
        guard
            case .message(
                let number, let topic, let payload, let publishedQoS, let publishedRetain,
                let expiry) = row.message,
            case .queued(_, _, _, let qos, let retain, _) = row.queued
        else { return }
        topic.withUnsafeBytes { topic in
            payload.withUnsafeBytes { payload in
                batch.message(
                    number, topic: topic, payload: payload, qos: publishedQoS,
                    retain: publishedRetain, expiresAtMs: expiry)
            }
        }
        if !row.messageID.isEmpty {
            row.messageID.withUnsafeBytes { batch.named(number, messageID: $0) }
        }
        batch.queued(
            session: session, position: position, message: number, qos: qos, retain: retain,
            isInWindow: false)
        if !row.shared.isEmpty {
            row.shared.withUnsafeBytes {
                batch.shared(session: session, position: position, filter: $0)
            }
        }
        if row.isReleased { batch.released(session: session, position: position) }
    }
}
