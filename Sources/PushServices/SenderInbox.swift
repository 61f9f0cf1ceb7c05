import BrokerAPI
import CLinux
import Glibc
import SystemFiles
import Synchronization

/// What other threads hand to the sender's thread, which they wake.
final class SenderInbox: Sendable {
    struct Content {
        var batches: [PushSender.Batch] = []
        /// Hand-outs of earlier batches that are of no use any more.
        var withdrawn: [HandOut] = []
        /// By endpoint: answers of the resolver.
        var addresses: [(endpoint: Int, HostAddresses)] = []
        var credentials: PushCredentials?
        var isStopping = false
    }

    private let content = Mutex(Content())
    let eventDescriptor: CInt

    init() throws(SystemError) {
        eventDescriptor = eventfd(0, CInt(EFD_NONBLOCK | EFD_CLOEXEC))
        guard eventDescriptor >= 0 else {
            throw SystemError(call: "eventfd", subject: "push services", code: errno)
        }
    }

    deinit { Glibc.close(eventDescriptor) }

    func change(_ body: (inout Content) -> Void) {
        content.withLock { body(&$0) }
        var one: UInt64 = 1
        _ = retrying { Glibc.write(eventDescriptor, &one, 8) }
    }

    func take() -> Content {
        var counter: UInt64 = 0
        _ = retrying { Glibc.read(eventDescriptor, &counter, 8) }
        return content.withLock { content in
            defer {
                let isStopping = content.isStopping
                content = Content()
                content.isStopping = isStopping
            }
            return content
        }
    }
}
