/// One request to the broker's HTTP API.
package struct AdminRequest: Sendable, Equatable {
    package enum Method: String, Sendable {
        case get = "GET"
        case post = "POST"
        case put = "PUT"
        case patch = "PATCH"
        case delete = "DELETE"
    }

    package var method: Method
    package var url: String
    /// The bearer token; `nil` over a Unix socket, which its file mode protects.
    package var token: String?
    /// The body; `nil` for none.
    package var body: [UInt8]?
    /// The header Idempotency-Key; `nil` for none.
    package var idempotencyKey: String?
    /// The header If-Match; `nil` for none.
    package var ifMatch: String?
    /// The media type of the body.
    package var contentType = "application/octet-stream"
}

/// A complete answer.
package struct AdminResponse: Sendable, Equatable {
    /// The HTTP status code.
    package var status: Int
    /// The media type, without parameters and in lower case; `nil` when none was given.
    package var mediaType: String?
    package var body: [UInt8]
}

/// Sends requests to one broker; tests replace it.
package protocol AdminTransport: Sendable {
    /// Throws ``ExitStatus/unreachable`` when there is no answer.
    func send(_ request: AdminRequest) async throws(CommandFailure) -> AdminResponse
    /// Sends a request whose body is all that `descriptor` brings, read while the answer comes.
    ///
    /// - Parameters:
    ///   - request: The request, whose own body does not count.
    ///   - descriptor: Stays open.
    ///   - name: Of what the descriptor reads, for errors.
    ///   - take: Gets the body of a successful answer, in parts.
    /// - Returns: The answer, without that body.
    /// - Throws: ``ExitStatus/unreachable`` when the connection fails, and what `take` throws.
    func stream(
        _ request: AdminRequest, from descriptor: CInt, named name: String,
        take: (ArraySlice<UInt8>) throws(CommandFailure) -> Void
    ) async throws(CommandFailure) -> AdminResponse
    /// Sends a request whose answer goes on for as long as the broker wants.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - take: Gets the body of a successful answer, in parts.
    /// - Returns: The answer, without that body.
    /// - Throws: ``ExitStatus/unreachable`` when the connection fails, and what `take` throws.
    func follow(
        _ request: AdminRequest, take: (ArraySlice<UInt8>) throws(CommandFailure) -> Void
    ) async throws(CommandFailure) -> AdminResponse
    /// Closes connections and ends threads. Nothing may be sent afterwards.
    func close() async
}
