import Addresses
import Transport

/// Any bytes yield a PROXY header, ``MalformedProxyHeader``, or a request for more bytes.
///
/// An input is a stream. Checks that nothing traps; that a header lies within stream and limit;
/// that neither later bytes nor splits change the result; that an error appears at one byte and
/// stays; and that an address is equal after formatting and parsing.
enum ProxyHeaderCheck {
    /// The result of reading the beginning of a stream.
    private enum Reading: Hashable {
        case header(ProxyHeader)
        case malformed(MalformedProxyHeader)
        case unfinished
    }

    static func run(_ input: [UInt8], trace: ((String) -> Void)?) throws(CheckFailure) {
        let whole = read(input)
        trace?("\(input.count) bytes: \(whole)")
        try checkArrival(input, whole)
        switch whole {
        case .unfinished:
            try CheckFailure.unless(
                input.count < ProxyHeader.maximumSize, "\(input.count) bytes are not enough")
        case .malformed: break
        case .header(let header):
            try CheckFailure.unless(
                header.size <= min(input.count, ProxyHeader.maximumSize) && header.size > 0,
                "a header of \(header.size) bytes in \(input.count)")
            if let source = header.source { try checkText(source) }
        }
    }

    /// Offered byte by byte, the stream gives the same result, at the byte where the header ends.
    private static func checkArrival(_ input: [UInt8], _ whole: Reading) throws(CheckFailure) {
        for count in 0...min(input.count, ProxyHeader.maximumSize) {
            let reading = read([UInt8](input.prefix(count)))
            guard reading != .unfinished else { continue }
            try CheckFailure.unless(
                reading == whole, "\(count) bytes are \(reading), all of them \(whole)")
            if case .header(let header) = reading {
                try CheckFailure.unless(
                    count == header.size, "\(count) bytes are a header of \(header.size)")
            }
            return
        }
        try CheckFailure.unless(
            whole == .unfinished, "no part of the bytes is \(whole), all of them are")
    }

    private static func checkText(_ source: IPAddress) throws(CheckFailure) {
        let family = source.family == .ipv4 ? "TCP4" : "TCP6"
        let host = source.hostText
        let line = "PROXY \(family) \(host) \(host) \(source.port) \(source.port)\r\n"
        let again = read([UInt8](line.utf8))
        guard case .header(let header) = again, header.source == source else {
            throw CheckFailure("\(source) as \(line) is read as \(again)")
        }
    }

    private static func read(_ bytes: [UInt8]) -> Reading {
        do throws(MalformedProxyHeader) {
            return try ProxyHeader.decode(bytes.span.bytes).map { .header($0) } ?? .unfinished
        } catch {
            return .malformed(error)
        }
    }
}
