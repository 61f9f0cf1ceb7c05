import BrokerAPI
import NIOCore

extension PushOrder: BatchItem {
    var byteCount: Int {
        request.encodedTarget.count + request.publication.topic.count
            + request.publication.payload.count
    }
}

/// A batch that begins or schedules a push for each line.
struct PushBatch: BatchWork {
    let routes: PushRoutes

    func prepare(
        _ line: UnsafeRawBufferPointer, _ caller: Caller?
    ) throws(Problem) -> PushOrder {
        let fields = try JSONFields(line: line, known: PushOrder.fields)
        let order = try PushOrder(
            fields, routes.publisher, maximumTopicLevels: routes.maximumTopicLevels,
            key: try fields.idempotencyKey(), caller: caller)
        guard !order.isDryRun else {
            throw fields.wrong(
                "dry_run", "is true, and a batch begins what its lines say",
                fix: "Ask with POST /v1/pushes.")
        }
        try routes.publisher.check(order.request.publication, of: caller)
        return order
    }

    func carryOut(
        _ orders: [PushOrder], for caller: Caller?
    ) async -> [Result<PushAccepted, Problem>] {
        var outcomes: [Result<PushAccepted, Problem>] = []
        for order in orders {
            do throws(Problem) {
                outcomes.append(.success(try await routes.store(order, for: caller)))
            } catch {
                outcomes.append(.failure(error))
            }
        }
        return outcomes
    }

    func write(
        _ outcomes: [Result<PushAccepted, Problem>], _ index: Int, of order: PushOrder, line: Int,
        to results: inout ByteBuffer
    ) -> LineEnd {
        switch outcomes[index] {
        case .success(let accepted):
            results.write(accepted, line: line)
            return accepted.duplicate ? .repeated : .done
        case .failure(let problem):
            results.write(problem, line: line)
            return .failed
        }
    }
}
