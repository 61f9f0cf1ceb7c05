import HermesTesting
import Store

/// A store in memory whose writes are on disk when the simulation says so, in their order, and that
/// a kill of the broker cuts between any two groups.
final class SimulatedStore: Store {
    /// What a broker finds that starts now.
    private(set) var committed: StoreModel
    /// With what is written and not on disk.
    private(set) var submitted: StoreModel
    private var pending: [(ticket: UInt64, records: [StoreRecord])] = []
    private var ready: [ClosedRange<UInt64>] = []
    private var reads: [QueueSlice] = []

    init(_ content: StoreModel) { (committed, submitted) = (content, content) }

    var isRecording: Bool { true }
    var isAccepting: Bool { true }
    var pendingCount: Int { pending.count }

    func submit(_ batch: inout WriteBatch) {
        for (ticket, records) in batch.groups() {
            guard let ticket else { preconditionFailure("records were submitted without a ticket") }
            submitted.apply(records)
            pending.append((ticket, records))
        }
        batch.clear()
    }

    /// The first `count` groups are on disk.
    func commit(_ count: Int) {
        for group in pending.prefix(count) {
            committed.apply(group.records)
            ready.append(group.ticket...group.ticket)
        }
        pending.removeFirst(min(count, pending.count))
    }

    func takeCompletions(_ tickets: inout [ClosedRange<UInt64>]) {
        tickets += ready
        ready = []
    }

    func read(_ request: QueueRead) {
        let queue = submitted.sessions[request.session]?.queue ?? [:]
        let positions = queue.keys.filter { $0 >= request.from && $0 < request.below }.sorted()
        var batch = WriteBatch(isRecording: true)
        for position in positions.prefix(request.maxMessages) {
            guard let row = queue[position] else { continue }
            append(row, request.session, position, to: &batch)
        }
        let next =
            positions.count > request.maxMessages
            ? positions[request.maxMessages] : request.below
        reads.append(QueueSlice(request: request, next: next, bytes: batch.takeBytes(leaving: [])))
    }

    func takeSlices(_ slices: inout [QueueSlice]) {
        slices += reads
        reads = []
    }

    private func append(
        _ row: StoreModel.Row, _ session: UInt64, _ position: UInt64, to batch: inout WriteBatch
    ) {
        let message = row.message
        message.topic.withUnsafeBytes { topic in
            message.payload.withUnsafeBytes { payload in
                batch.message(
                    message.number, topic: topic, payload: payload, qos: message.qos,
                    retain: message.retain, expiresAtMs: message.expiresAtMs)
            }
        }
        if !message.messageID.isEmpty {
            message.messageID.withUnsafeBytes { batch.named(message.number, messageID: $0) }
        }
        batch.queued(
            session: session, position: position, message: message.number, qos: row.qos,
            retain: row.retain, isInWindow: false)
        if row.isReleased { batch.released(session: session, position: position) }
    }
}
