import Glibc
import Logging
import Synchronization
import SystemFiles

/// Reports the broker's state to the service manager that started it: ready, alive, stopping.
///
/// Implements sd_notify(3) and sd_watchdog_enabled(3) of systemd: each message is one datagram of
/// `NAME=value` lines to the Unix socket in `NOTIFY_SOCKET`. Without this variable nothing is sent.
/// A failure to send is logged and has no other effect.
final class ServiceNotification: Sendable {
    /// Interval between watchdog messages: half of `WATCHDOG_USEC`, after which the service manager
    /// ends a silent process. `nil` when it expects none.
    let watchdogInterval: Duration?

    private let socket: NotificationSocket?
    private let logger: Logger
    /// Makes a lost service manager one log line instead of one per message.
    private let hasFailed = Atomic(false)

    /// Addresses named in a status line; further ones are counted.
    private static let listenersShown = 4
    /// A shorter interval would only keep the process busy.
    private static let shortestWatchdogInterval = Duration.milliseconds(1)

    /// Reads `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`; logs and ignores invalid values.
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

    /// Reports that every listener accepts, so that dependent services may start.
    ///
    /// - Parameters:
    ///   - listeners: Addresses and ports for MQTT clients.
    ///   - admin: Address and port of the HTTP API.
    func ready(listeners: [String], admin: String) {
        var addresses = listeners.prefix(Self.listenersShown).joined(separator: ", ")
        let more = listeners.count - Self.listenersShown
        if more > 0 { addresses += " and \(more) more" }
        send("READY=1\nSTATUS=MQTT on \(addresses); admin API on \(admin)")
    }

    /// Reports that the process is stopping.
    ///
    /// - Parameter limit: Time that the shutdown may take.
    func stopping(within limit: Duration) {
        let (seconds, attoseconds) = limit.components
        let microseconds = seconds * 1_000_000 + attoseconds / 1_000_000_000_000
        send(
            "STOPPING=1\nSTATUS=Stopping: sends what waits\nEXTEND_TIMEOUT_USEC=\(microseconds)")
    }

    /// Calls `ask` at every ``watchdogInterval`` until cancelled. Returns at once without one.
    ///
    /// - Parameter ask: Asks the broker's thread to call the argument. Without that call nothing is
    ///   sent, and the service manager restarts the process.
    func watch(_ ask: @Sendable (_ isAlive: @escaping @Sendable () -> Void) -> Void) async {
        guard let watchdogInterval else { return }
        while (try? await Task.sleep(for: watchdogInterval)) != nil {
            // Must not block, since it runs on the broker's thread.
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
                "error": "\(SystemError.words(for: code))",
            ])
    }

    private static func watchdogInterval(
        _ environment: [String: String], _ logger: Logger
    ) -> Duration? {
        guard let text = environment["WATCHDOG_USEC"], !text.isEmpty else { return nil }
        // The variables belong to another service and were inherited.
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

/// A datagram socket connected to the service manager's.
private final class NotificationSocket: Sendable {
    /// The socket cannot be made.
    struct Unusable: Error, CustomStringConvertible {
        let description: String
    }

    /// The value of `NOTIFY_SOCKET`.
    let name: String
    private let descriptor: CInt
    private let address: sockaddr_un
    private let addressLength: socklen_t

    /// Time that a message may wait for room in the receiver's queue.
    private static let patienceSeconds = 1

    /// - Parameter name: An absolute path, or `@` and an abstract name: unix(7).
    /// - Throws: ``Unusable`` for any other name, and without a free descriptor.
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
        // An abstract name is delimited by the address length, not by a zero byte.
        addressLength = socklen_t(MemoryLayout<sa_family_t>.size + bytes.count)

        descriptor = socket(
            AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else {
            throw Unusable(description: "socket: \(SystemError.words(for: errno))")
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
                let (count, code) = retrying {
                    sendto(descriptor, bytes, bytes.count, flags, address, addressLength)
                }
                return count < 0 ? code : nil
            }
        }
    }
}
