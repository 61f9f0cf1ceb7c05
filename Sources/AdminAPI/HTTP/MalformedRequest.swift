import NIOHTTP1

extension Problem {
    /// The bytes of a connection are no HTTP/1.1. The parser's own words name its states, so none of
    /// them are passed on.
    init(malformedRequest error: HTTPParserError) {
        let (detail, fix) = Self.words(error)
        self.init(.malformedRequest, detail, fix: fix)
    }

    init(headTooLarge limits: HTTPLimits) {
        self.init(
            .headersTooLarge,
            "The request line and headers are larger than \(limits.headBytes) bytes, or have more "
                + "than \(limits.headFields) fields.",
            fix: "Send fewer and shorter headers, and a shorter path and query.")
    }

    private static func words(_ error: HTTPParserError) -> (detail: String, fix: String) {
        switch error {
        case .invalidMethod:
            (
                "The first line does not begin with a method of HTTP.",
                "Speak HTTP/1.1, with the method in capitals. MQTT clients connect to an address of "
                    + "listeners, and TLS needs admin.tls."
            )
        case .invalidVersion, .invalidConstant:
            (
                "The first line does not end with a space and HTTP/1.1.",
                "Write it as `GET /v1/status HTTP/1.1`, end it with CR and LF, and encode a space in "
                    + "the target as %20."
            )
        case .paused:
            ("The connection speaks HTTP/2.", "Speak HTTP/1.1; with curl, by --http1.1.")
        case .invalidURL:
            (
                "The target in the first line holds a byte that no URL has.",
                "Write every byte outside letters, digits, `-`, `.`, `_` and `~` as %XX."
            )
        case .invalidHeaderToken, .lfExpected:
            (
                "A header is not `Name: value`, or holds a control character.",
                "Write each header on one line that ends with CR and LF, without spaces in its name."
            )
        case .invalidContentLength:
            (
                "The Content-Length is not a number of bytes.",
                "Send one Content-Length in decimal digits, or the body in chunks."
            )
        case .unexpectedContentLength:
            ("There is more than one Content-Length.", "Send one.")
        case .invalidChunkSize, .strictModeAssertion:
            (
                "A chunk of the body is not its size in hexadecimal digits, CR, LF, that many bytes, "
                    + "CR and LF.",
                "Correct the chunk, or send the body whole with its Content-Length."
            )
        case .invalidEOFState, .closedConnection:
            (
                "The connection ended in the middle of the request.",
                "Send as many bytes as Content-Length says, or the last chunk, then read the answer."
            )
        default:
            (
                "The request is not well-formed, or its headers contradict each other.",
                "Send one request after the other, and not both Content-Length and Transfer-Encoding."
            )
        }
    }
}
