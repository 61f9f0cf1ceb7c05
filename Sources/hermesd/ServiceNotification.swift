import Glibc
import Logging
import Synchronization

/// Tells the service manager that started us how the broker is: ready, alive, stopping.
///
/// The protocol of systemd's sd_notify(3) and sd_watchdog_enabled(3), without its library: a
/// message is one datagram of `NAME=value` lines to the Unix socket that `NOTIFY_SOCKET` names.
/// Without that variable nothing is sent. What cannot be sent is logged and changes nothing else.
final class ServiceNotification: Sendable {
    /// How long after one sign of life to ask for the next: half of the time after which the
    /// service manager ends a silent process (`WATCHDOG_USEC`). `nil` when it expects none.
    let watchdogInterval: Duration?

    private let socket: NotificationSocket?
    private let logger: Logger
    /// So that a service manager that is gone is one line in the log, not one per sign of life.
    private let hasFailed = Atomic(false)

    /// Addresses that a status line names; more are counted.
    private static let listenersShown = 4
    /// Below this, a watchdog would keep the process busy with being alive.
    private static let shortestWatchdogInterval = Duration.milliseconds(1)

    /// Reads `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`; a value that is no good is logged
    /// and counts as left out.
    init(environment: [String: String], logger: Logger) {
        self.logger = logger
        guard let name = environment["NOTIFY_SOCKET"], !name.isEmpty else {
            socket = nil
            watchdogInterval = nil
            return
        }
        do throws(NotificationSocket.Unusable) {
            socket = try NotificationSocket(name: name)
            watchdogInterval = Self.watchdogInterval(environment, logger)
        } catch {
            logger.warning(
                "Service manager cannot be told of the start",
                metadata: ["service.socket": "\(name)", "error": "\(error)"])
            socket = nil
            watchdogInterval = nil
        }
    }

    /// Every listener accepts: what waited for this service may start.
    ///
    /// - Parameters:
    ///   - listeners: Addresses with ports that accept MQTT clients.
    ///   - admin: Address and port of the HTTP API.
    func ready(listeners: [String], admin: String) {
        var addresses = listeners.prefix(Self.listenersShown).joined(separator: ", ")
        let more = listeners.count - Self.listenersShown
        if more > 0 { addresses += " and \(more) more" }
        send("READY=1\nSTATUS=MQTT on \(addresses); admin API on \(admin)")
    }

    /// The process is about to end.
    ///
    /// - Parameter limit: How long that may take, for a service manager that would wait less.
    func stopping(within limit: Duration) {
        let (seconds, attoseconds) = limit.components
        let microseconds = seconds * 1_000_000 + attoseconds / 1_000_000_000_000
        send(
            "STOPPING=1\nSTATUS=Stopping: sends what waits\nEXTEND_TIMEOUT_USEC=\(microseconds)")
    }

    /// Asks for a sign of life at every ``watchdogInterval`` until the task is cancelled, and
    /// passes each on. Returns at once when the service manager expects none.
    ///
    /// - Parameter ask: Makes whoever must be alive call its argument, from any thread. An answer
    ///   that never comes is for the service manager to judge.
    func watch(_ ask: @Sendable (_ isAlive: @escaping @Sendable () -> Void) -> Void) async {
        guard let watchdogInterval else { return }
        while (try? await Task.sleep(for: watchdogInterval)) != nil {
            // Never waits: the answer comes on the thread that must not stand still.
            ask { self.send("WATCHDOG=1", waits: false) }
        }
    }

    private func send(_ message: String, waits: Bool = true) {
        guard let socket else { return }
        guard let code = socket.send(message, waits: waits) else {
            hasFailed.store(false, ordering: .relaxed)
            return
        }
        guard !hasFailed.exchange(true, ordering: .relaxed) else { return }
        logger.warning(
            "Service manager does not take messages",
            metadata: [
                "service.socket": "\(socket.name)",
                "service.message": "\(message.prefix { $0 != "=" })",
                "error": "\(String(cString: strerror(code)))",
            ])
    }

    private static func watchdogInterval(
        _ environment: [String: String], _ logger: Logger
    ) -> Duration? {
        guard let text = environment["WATCHDOG_USEC"], !text.isEmpty else { return nil }
        // The variables of somebody else's service, inherited.
        if let process = environment["WATCHDOG_PID"], process != "\(getpid())" { return nil }
        guard let microseconds = Int64(text), microseconds > 0 else {
            logger.warning(
                "WATCHDOG_USEC is no number of microseconds, so no signs of life are sent",
                metadata: ["service.watchdog_usec": "\(text)"])
            return nil
        }
        return max(.microseconds(microseconds / 2), shortestWatchdogInterval)
    }
}

/// A socket for datagrams to the one that a service manager listens on.
private final class NotificationSocket: Sendable {
    /// Why there can be none.
    struct Unusable: Error, CustomStringConvertible {
        let description: String
    }

    /// As `NOTIFY_SOCKET` gives it.
    let name: String
    private let descriptor: CInt
    private let address: sockaddr_un
    private let addressLength: socklen_t

    /// How long a message may wait for room in the receiver's queue.
    private static let patienceSeconds = 1

    /// - Parameter name: An absolute path, or `@` and a name in the abstract namespace: unix(7).
    /// - Throws: ``Unusable`` when it is neither, or there is no descriptor left.
    init(name: String) throws(Unusable) {
        var bytes = [UInt8](name.utf8)
        switch bytes.first {
        case UInt8(ascii: "@"): bytes[0] = 0
        case UInt8(ascii: "/"): break
        default:
            throw Unusable(
                description: "NOTIFY_SOCKET is neither an absolute path nor an abstract name "
                    + "(@name). Unset it where no service manager waits for messages.")
        }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let room = MemoryLayout.size(ofValue: address.sun_path) - 1
        guard bytes.count <= room else {
            throw Unusable(
                description:
                    "NOTIFY_SOCKET has \(bytes.count) bytes, and a socket address \(room) at most.")
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        // An abstract name is as long as the address says, not up to its first zero.
        addressLength = socklen_t(MemoryLayout<sa_family_t>.size + bytes.count)

        descriptor = socket(
            AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else {
            throw Unusable(description: "socket: \(String(cString: strerror(errno)))")
        }
        var patience = timeval(tv_sec: Self.patienceSeconds, tv_usec: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        self.name = name
        self.address = address
    }

    deinit { close(descriptor) }

    /// Sends one datagram; returns `nil`, or the value of `errno` when it could not be sent.
    func send(_ message: String, waits: Bool) -> CInt? {
        let bytes = [UInt8](message.utf8)
        var flags = Int32(MSG_NOSIGNAL)
        if !waits { flags |= Int32(MSG_DONTWAIT) }
        return withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                while sendto(descriptor, bytes, bytes.count, flags, address, addressLength) < 0 {
                    guard errno == EINTR else { return errno }
                }
                return nil
            }
        }
    }
}
