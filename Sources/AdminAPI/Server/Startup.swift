import NIOCore
import Synchronization

/// Waits until every listener accepts, then reports their addresses.
final class Startup: Sendable {
    private struct State {
        var port: UInt16?
        var socketPublished = false
        var failure: AdminServerError?
    }

    private let address: String
    private let socketFile: UnixSocketFile?
    private let onListening: @Sendable (AdminEndpoints) -> Void
    private let state = Mutex(State())

    init(
        address: String, socketFile: UnixSocketFile?,
        onListening: @escaping @Sendable (AdminEndpoints) -> Void
    ) {
        self.address = address
        self.socketFile = socketFile
        self.onListening = onListening
    }

    /// True once the Unix socket has its final path.
    var isSocketPublished: Bool { state.withLock { $0.socketPublished } }

    /// An error after a listener had started; `nil` without one.
    var failure: AdminServerError? { state.withLock { $0.failure } }

    func tcpIsListening(_ channel: any Channel) {
        let port = UInt16(clamping: channel.localAddress?.port ?? 0)
        state.withLock { $0.port = port }
        announceWhenComplete()
    }

    func unixIsListening(_ channel: any Channel) {
        do {
            try socketFile?.publish()
            state.withLock { $0.socketPublished = true }
            announceWhenComplete()
        } catch {
            state.withLock { $0.failure = error }
            // Ends the listener, and with it the server.
            channel.close(promise: nil)
        }
    }

    private func announceWhenComplete() {
        let endpoints: AdminEndpoints? = state.withLock { state in
            guard let port = state.port, socketFile == nil || state.socketPublished else {
                return nil
            }
            return AdminEndpoints(address: address, port: port, unixSocketPath: socketFile?.path)
        }
        if let endpoints { onListening(endpoints) }
    }
}
