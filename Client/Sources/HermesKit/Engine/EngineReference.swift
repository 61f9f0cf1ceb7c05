import NIOCore

/// A reference to the engine that any thread may hold; all work with it is done on its event loop.
final class EngineReference: Sendable {
    private let box: NIOLoopBoundBox<ClientEngine?>
    private let loop: any EventLoop

    init(on loop: any EventLoop) {
        self.loop = loop
        box = .makeEmptyBox(valueType: ClientEngine.self, eventLoop: loop)
    }

    /// Brings the engine to its event loop.
    func set(_ engine: sending ClientEngine) {
        let bound = NIOLoopBoundBox.makeBoxSendingValue(engine, eventLoop: loop)
        loop.execute { self.box.value = bound.value }
    }

    /// Does `work` on the event loop, in the order of the calls; `otherwise` if the client is gone.
    func execute(
        orElse otherwise: @escaping @Sendable () -> Void = {},
        _ work: @escaping @Sendable (ClientEngine) -> Void
    ) {
        loop.execute {
            if let engine = self.box.value { work(engine) } else { otherwise() }
        }
    }

    /// Does `work` on the event loop and waits for its result.
    func perform<Value: Sendable>(
        _ work: @escaping @Sendable (ClientEngine) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            loop.execute {
                continuation.resume(
                    with: Result {
                        guard let engine = self.box.value else { throw CancellationError() }
                        return try work(engine)
                    })
            }
        }
    }

    /// The client is gone: closes what is open and lets the engine go.
    func release() {
        loop.execute {
            self.box.value?.stop()
            self.box.value = nil
        }
    }
}
