import Hummingbird
import PlainText
import Synchronization

/// The name of a request: in its answer, in its problem, and in the lines of the log about it.
///
/// It is what the caller calls it, by `X-Request-ID` or by the trace of a `traceparent` (W3C Trace
/// Context, section 3.2); otherwise the broker makes one.
struct RequestID: Sendable, Equatable {
    /// 1 to 64 letters, digits and `-._:`.
    let text: String

    static let header = HTTPFields.Element.Name("X-Request-ID")

    /// - Parameters:
    ///   - given: The caller's `X-Request-ID`; passed over unless it has the form of one.
    ///   - traceParent: The caller's `traceparent`; passed over likewise.
    ///   - ids: Makes a name.
    init(given: String?, traceParent: String?, _ ids: RequestIDs) {
        if let given, Self.isValid(given) {
            text = given
        } else {
            text = traceParent.flatMap { Self.trace(of: $0) } ?? ids.make()
        }
    }

    private static func isValid(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: ":"), UInt8(ascii: "-"), UInt8(ascii: "."),
                    UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }

    /// The 32 digits of the trace; `nil` for another form, and for the trace of zeros, which is none.
    private static func trace(of text: String) -> String? {
        let bytes = Array(text.utf8.prefix(53))
        guard bytes.count == 53, bytes[2] == UInt8(ascii: "-"), bytes[35] == UInt8(ascii: "-"),
            bytes[52] == UInt8(ascii: "-")
        else { return nil }
        let trace = bytes[3..<35]
        let isHexadecimal = trace.allSatisfy { byte in
            (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
        }
        guard isHexadecimal, trace.contains(where: { $0 != UInt8(ascii: "0") }) else { return nil }
        return String(decoding: trace, as: UTF8.self)
    }
}

/// Makes names of requests: 16 hexadecimal digits, which this process does not make twice.
final class RequestIDs: Sendable {
    private let next = Atomic(UInt64.random(in: .min ... .max))

    func make() -> String {
        // An odd step visits every number before one comes again.
        let number = next.wrappingAdd(0x9E37_79B9_7F4A_7C15, ordering: .relaxed).oldValue
        return Hexadecimal.text(of: number)
    }
}
