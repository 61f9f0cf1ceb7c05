import Glibc

/// One line a second on standard error while a scenario runs; every fifth one where no terminal is.
struct Progress {
    private let label: String
    private let isTerminal = isatty(STDERR_FILENO) == 1
    private let start = Clock.nanoseconds()
    private var last: (time: UInt64, delivered: UInt64, cpu: UInt64)?
    private let isQuiet: Bool

    init(_ label: String, isQuiet: Bool) {
        self.label = label
        self.isQuiet = isQuiet
    }

    private var interval: UInt64 { isTerminal ? 1_000_000_000 : 5_000_000_000 }

    /// Shows the rate since the last line when it is time for one.
    mutating func show(_ now: UInt64, _ counts: LoadCounts, _ process: BrokerProcess?) {
        guard !isQuiet else { return }
        guard let previous = last else {
            last = (now, counts.delivered, (try? process?.cpuNanoseconds()) ?? 0)
            return
        }
        guard now >= previous.time + interval else { return }
        let cpu = (try? process?.cpuNanoseconds()) ?? 0
        let seconds = Double(now - previous.time) / 1e9
        let delivered = counts.delivered - previous.delivered
        var line = "\(Text.fixed(Double(delivered) / seconds, digits: 0)) messages/s"
        if process != nil, delivered > 0 {
            let micros = Double(cpu - previous.cpu) / 1e3 / Double(delivered)
            line += ", broker \(Text.fixed(micros, digits: 2)) us each"
        }
        write(now, line)
        last = (now, counts.delivered, cpu)
    }

    /// Shows a line of a scenario that counts something else, when it is time for one.
    mutating func show(_ now: UInt64, _ line: @autoclosure () -> String) {
        guard !isQuiet else { return }
        guard let previous = last else {
            last = (now, 0, 0)
            return
        }
        guard now >= previous.time + interval else { return }
        write(now, line())
        last = (now, 0, 0)
    }

    /// Removes the line from a terminal.
    func clear() {
        guard !isQuiet, isTerminal else { return }
        Self.emit("\r\u{1B}[K")
    }

    private func write(_ now: UInt64, _ line: String) {
        let seconds = Text.fixed(Double(now - start) / 1e9, digits: 0)
        let text = "\(label): \(seconds) s, \(line)"
        Self.emit(isTerminal ? "\r\u{1B}[K\(text)" : "\(text)\n")
    }

    private static func emit(_ text: String) {
        // Progress that nobody can read is no reason to stop.
        _ = Array(text.utf8).withUnsafeBytes {
            Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count)
        }
    }
}
