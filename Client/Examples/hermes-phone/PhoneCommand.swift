import Dispatch

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// A line of standard input.
enum PhoneCommand: Sendable {
    case background
    case foreground
    case wake
    case network(String?)
    case publish(topic: String, text: String)
    case subscribe(String)
    case unsubscribe(String)
    case device(token: [UInt8], bundle: String)
    case forgetDevice
    case outbox
    case retry(UInt64)
    case discard(UInt64)
    case now
    case statistics
    case stop
    case unknown(String)

    init(_ line: String) {
        let words = line.split(separator: " ", maxSplits: 2).map(String.init)
        self =
            switch (words.first, words.count) {
            case ("background", 1): .background
            case ("foreground", 1): .foreground
            case ("wake", 1): .wake
            case ("network", 1): .network(nil)
            case ("network", _): .network(words.dropFirst().joined(separator: " "))
            case ("publish", 3): .publish(topic: words[1], text: words[2])
            case ("subscribe", 2): .subscribe(words[1])
            case ("unsubscribe", 2): .unsubscribe(words[1])
            case ("device", 1): .forgetDevice
            case ("device", 3):
                Self.hexadecimal(words[1]).map { .device(token: $0, bundle: words[2]) }
                    ?? .unknown(line)
            case ("outbox", 1): .outbox
            case ("retry", 2): UInt64(words[1]).map { .retry($0) } ?? .unknown(line)
            case ("discard", 2): UInt64(words[1]).map { .discard($0) } ?? .unknown(line)
            case ("now", 1): .now
            case ("statistics", 1): .statistics
            case ("stop", 1): .stop
            default: .unknown(line)
            }
    }

    private static func hexadecimal(_ text: String) -> [UInt8]? {
        let digits = text.compactMap(\.hexDigitValue)
        guard digits.count == text.count, digits.count % 2 == 0 else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map {
            UInt8(digits[$0] << 4 | digits[$0 + 1])
        }
    }
}

/// Standard input and signals, as commands.
final class PhoneInputs {
    private let sources: [any DispatchSourceSignal]

    init(_ commands: AsyncStream<PhoneCommand>.Continuation, endsWithInput: Bool) {
        sources = [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { commands.yield(.stop) }
            source.resume()
            return source
        }
        // A thread of its own: reading a line waits for a person.
        DispatchQueue(label: "standard input").async {
            while let line = readLine() {
                if !line.isEmpty { commands.yield(PhoneCommand(line)) }
            }
            if endsWithInput { commands.yield(.stop) }
        }
    }

    func cancel() {
        for source in sources { source.cancel() }
    }
}
