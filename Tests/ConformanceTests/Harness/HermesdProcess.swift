import Glibc
import Synchronization

/// The one `hermesd` that all tests of this process share, started on first use.
///
/// A shell runs it, and ends it and removes its folder as soon as the pipe from this process
/// closes, however the tests end.
enum HermesdProcess {
    private struct Running {
        var ports: [UInt16]
        var logPath: String
        /// The broker runs while this pipe is open.
        var lifeline: CInt
    }

    private static let running = Mutex<Result<Running, ConformanceFailure>?>(nil)
    private static let startPatience = 30_000

    /// The port of its listener on 127.0.0.1 for TCP or WebSocket.
    static func port(_ transport: Transport) throws -> UInt16 {
        try running.withLock { running in
            let result = running ?? Result { () throws(ConformanceFailure) in try start() }
            running = result
            return try result.get().ports[transport == .webSocket ? 1 : 0]
        }
    }

    /// The end of the log, for a failure's message.
    static var logTail: String {
        running.withLock { running in
            guard case .success(let running)? = running else { return "hermesd was not started" }
            return String(read(running.logPath).suffix(2_000))
        }
    }

    private static func start() throws(ConformanceFailure) -> Running {
        let executable = try executable()
        var template = Array("/tmp/hermes-conformance-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw ConformanceFailure("mkdtemp: errno \(errno)")
        }
        let folder = String(
            decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let script = """
            cd "$1" || exit 1
            "$2" --port 0 --port 0 --admin-port 0 --data-directory "$1/data" --logging-level info \
                --connect-timeout \(BrokerUnderTest.connectTimeout)ms </dev/null >hermesd.log 2>&1 &
            read -r _
            kill -TERM $!
            wait $!
            cd / && rm -rf "$1"
            """
        let lifeline = try spawn(["/bin/sh", "-c", script, "sh", folder, executable])
        let log = folder + "/hermesd.log"
        let deadline = TCPWire.now + startPatience
        while TCPWire.now < deadline {
            let ports = announcedPorts(read(log))
            if ports.count == 2 {
                return Running(ports: ports, logPath: log, lifeline: lifeline)
            }
            _ = poll(nil, 0, 10)
        }
        throw ConformanceFailure(
            "\(executable) announced not both MQTT listeners within \(startPatience) ms; "
                + "its log:\n\(read(log).suffix(2_000))")
    }

    /// `HERMESD`, or the program beside the test bundle.
    private static func executable() throws(ConformanceFailure) -> String {
        var candidates: [String] = []
        if let path = getenv("HERMESD") {
            candidates.append(String(cString: path))
        } else {
            var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
            let count = buffer.withUnsafeMutableBytes { buffer -> Int in
                guard let base = buffer.baseAddress else { return 0 }
                return readlink("/proc/self/exe", base, buffer.count)
            }
            let bundle = String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
            let folder = bundle.split(separator: "/").dropLast().joined(separator: "/")
            candidates.append("/\(folder)/hermesd")
        }
        for candidate in candidates where access(candidate, X_OK) == 0 { return candidate }
        throw ConformanceFailure(
            "no hermesd at \(candidates.joined(separator: " or ")). Run `swift build`, "
                + "or name the program in the environment variable HERMESD.")
    }

    /// Starts a program; returns the writing end of its standard input.
    private static func spawn(_ arguments: [String]) throws(ConformanceFailure) -> CInt {
        var ends: [CInt] = [-1, -1]
        guard pipe(&ends) == 0 else { throw ConformanceFailure("pipe: errno \(errno)") }
        defer { close(ends[0]) }
        // Not inherited, or the broker would hold its own lifeline.
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO)
        // A reader of our output must not wait for the broker's end.
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO)
        // Test threads block signals, which a shell needs to notice its children.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var noSignals = sigset_t()
        sigemptyset(&noSignals)
        posix_spawnattr_setsigmask(&attributes, &noSignals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))

        let environment = [
            "PATH=/usr/bin:/bin", "HERMES_ADMIN_TOKEN=conformance-tests-0123456789abcdef",
            "HERMES_LISTENERS_1_PROTOCOL=websocket",
        ]
        var argumentPointers = arguments.map { strdup($0) } + [nil]
        var environmentPointers = environment.map { strdup($0) } + [nil]
        defer { for pointer in argumentPointers + environmentPointers { free(pointer) } }
        var process: pid_t = 0
        let code = posix_spawn(
            &process, arguments[0], &actions, &attributes, &argumentPointers, &environmentPointers)
        guard code == 0 else {
            close(ends[1])
            throw ConformanceFailure("\(arguments[0]): cannot be started, error \(code)")
        }
        return ends[1]
    }

    /// From `… MQTT listener ready … listener.address=127.0.0.1:40123`.
    private static func announcedPorts(_ log: String) -> [UInt16] {
        log.split(separator: "\n").compactMap { line in
            guard line.contains("MQTT listener ready"),
                let key = line.firstRange(of: "listener.address=127.0.0.1:")
            else { return nil }
            return UInt16(line[key.upperBound...].prefix { $0.isNumber })
        }
    }

    private static func read(_ path: String) -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 * 1_024)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            guard count > 0 else { return String(decoding: text, as: UTF8.self) }
            text.append(contentsOf: buffer[..<count])
        }
    }
}
