/// One request to the broker's HTTP API.
package struct AdminRequest: Sendable, Equatable {
    package enum Method: String, Sendable {
        case get = "GET"
        case post = "POST"
        case delete = "DELETE"
    }

    package var method: Method
    package var url: String
    /// Sent as a bearer token; `nil` where the Unix socket's mode is the guard.
    package var token: String?
    /// `nil` sends none.
    package var body: [UInt8]?
}

/// What came back, whole.
package struct AdminResponse: Sendable, Equatable {
    /// The HTTP status code.
    package var status: Int
    /// The media type, without parameters and in lower case; `nil` when none was given.
    package var mediaType: String?
    package var body: [UInt8]

    package init(status: Int, mediaType: String?, body: [UInt8]) {
        self.status = status
        self.mediaType = mediaType
        self.body = body
    }
}

/// Carries requests to one broker; tests answer them themselves.
package protocol AdminTransport: Sendable {
    /// Throws ``ExitStatus/unreachable`` when there is no answer.
    func send(_ request: AdminRequest) async throws(CommandFailure) -> AdminResponse
    /// Ends connections and threads; nothing is sent afterwards.
    func close() async
}
