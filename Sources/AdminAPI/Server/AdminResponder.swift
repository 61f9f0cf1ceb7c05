import Addresses
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import OperatorLog
import PlainText
import RequestText

/// Handles one request from its head to its answer. It may be rejected, in this order, for its
/// target, host, route, token, body headers, and body.
struct AdminResponder: Sendable {
    let routes: RouteTable
    let hosts: HostPolicy
    /// `nil` for the Unix socket, which its file mode protects.
    let gatekeeper: Gatekeeper?
    let bounds: PublishBounds
    let connections: OpenConnections
    let limits: HTTPLimits
    let requests: RequestCounters
    let maximumBodyBytes: Int
    let date: HTTPDate
    let logger: Logger
    let log: FloodLog
    let ids = RequestIDs()

    /// Answers one request; throws only when the connection is lost.
    @Sendable
    func respond(
        _ request: Request, _ writer: consuming ResponseWriter, _ channel: any Channel
    ) async throws {
        let start = ContinuousClock.now
        var response: Response
        var routeNumber: Int?
        let headers = RequestHeaders(request.headers)
        let id = RequestID(given: headers.requestID, traceParent: headers.traceParent, ids)
        do throws(Problem) {
            let admitted = try admit(request, headers, channel, &routeNumber)
            if admitted.expectsContinue {
                try await Self.invite(writer)
            }
            var routeRequest = RouteRequest(
                parameters: admitted.parameters, query: admitted.query, body: [],
                caller: admitted.caller, idempotencyKey: admitted.idempotencyKey,
                ifMatch: admitted.ifMatch, isHead: request.method == .head,
                hostName: admitted.hostName)
            if admitted.route.body == .lines {
                routeRequest.stream = stream(of: request, admitted, channel)
            } else {
                routeRequest.body = try await read(request.body, admitted)
            }
            if admitted.route.isStream {
                routeRequest.admitAgain = admission(of: request, admitted, channel)
            }
            response = try await admitted.route.handler(routeRequest)
            if let wanted = admitted.ifNoneMatch { response.answerUnlessChanged(wanted) }
            if admitted.route.isChange { logChange(request, id, admitted, from: channel) }
        } catch {
            report(error, of: request, id, from: channel)
            var problem = error
            problem.requestID = id
            response = Response(problem)
        }
        response.headers[.date] = date.now()
        if let header = RequestID.header { response.headers[header] = id.text }
        response.headers.append(contentsOf: Self.fixedHeaders)
        let span = ContinuousClock.now - start
        requests.count(route: routeNumber, status: response.status.code, after: span)
        logger.debug(
            "Admin request answered",
            metadata: [
                LogKeys.method: "\(request.method.rawValue)",
                LogKeys.path: "\((request.head.path ?? "").visible())",
                LogKeys.status: "\(response.status.code)",
                LogKeys.durationMicroseconds: "\(span.microseconds)",
                LogKeys.request: "\(id.text)",
            ])
        if connections.mustWait(channel) { try await Task.sleep(for: limits.strangerPause) }
        if request.method == .head { response = Self.head(of: response) }
        try await writer.write(response: response.head, body: response.body)
    }

    /// The answer to HEAD: the headers of GET, so that a stream has no length (RFC 9110, section
    /// 9.3.2) and says that it would come in chunks, by which ``ConnectionGuard`` knows it.
    private static func head(of response: Response) -> Response {
        var head = response.createHeadResponse()
        let hasBody = response.status.code >= 200 && ![204, 304].contains(response.status.code)
        if response.body.contentLength == nil, hasBody {
            head.headers[.contentLength] = nil
            head.headers[.transferEncoding] = "chunked"
        }
        return head
    }

    /// Headers of every answer, which no route sets.
    private static let fixedHeaders: HTTPFields = [
        .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
    ]

    /// A request whose head has been accepted.
    private struct Admitted {
        var route: Route
        var parameters: [String: String]
        var query: QueryItems
        var caller: Caller?
        var idempotencyKey: String?
        var ifMatch: String?
        var ifNoneMatch: String?
        var hostName: String
        /// From Content-Length; `nil` for a chunked body.
        var declaredBytes: Int?
        var expectsContinue: Bool
    }

    private func admit(
        _ request: Request, _ headers: RequestHeaders, _ channel: any Channel,
        _ routeNumber: inout Int?
    ) throws(Problem) -> Admitted {
        let text = request.head.path ?? ""
        guard text.utf8.count <= limits.targetBytes else {
            throw Problem(
                .targetTooLong,
                "The request target is larger than \(limits.targetBytes) bytes.",
                fix: "Send a shorter path and query.")
        }
        let hostName = try hosts.check(
            host: request.head.authority, repeated: headers.hasSecondHost, origin: headers.origin)
        guard let target = RequestTarget(text) else {
            throw Problem(
                .malformedRequest, "The request target is \"\(text.visible())\", which is no path.",
                fix: "Send a path that begins with `/`.")
        }
        let (number, route, parameters) = try routes.match(request.method, target)
        routeNumber = number
        let caller = try caller(headers.authorization, for: route, channel)
        try bounds.admit(caller, to: route)
        try headers.refuseUnsupported(by: route)
        let idempotencyKey = try headers.idempotencyKey(for: route)
        let query = try QueryItems(target.query, known: route.query)
        let declaredBytes = try checkBody(headers, route)
        try bounds.charge(caller, for: route)
        return Admitted(
            route: route, parameters: parameters, query: query, caller: caller,
            idempotencyKey: idempotencyKey, ifMatch: headers.ifMatch,
            ifNoneMatch: headers.ifNoneMatch,
            hostName: hostName, declaredBytes: declaredBytes,
            expectsContinue: try expectsContinue(headers) && route.body != .none)
    }

    /// The caller, if the route needs one.
    private func caller(
        _ authorization: String?, for route: Route, _ channel: any Channel
    ) throws(Problem) -> Caller? {
        switch route.access {
        case .open: return nil
        case .scope(let scope, _, _):
            guard let gatekeeper else { return .unixSocket }
            let caller: Caller
            do {
                caller = try gatekeeper.admit(
                    authorization, needing: scope, from: channel.remoteAddress)
            } catch {
                connections.distrust(channel)
                throw error
            }
            try connections.trust(channel)
            return caller
        }
    }

    /// Checks the headers of the body; returns its declared length.
    private func checkBody(_ headers: RequestHeaders, _ route: Route) throws(Problem) -> Int? {
        let coding = headers.transferEncoding
        if let coding, !coding.utf8.isWord("chunked") {
            throw Problem(
                .unsupportedMediaType,
                "The transfer coding \"\(coding.visible())\" is not supported.",
                field: "Transfer-Encoding", fix: "Send the body as it is, or chunked.")
        }
        // The decoder has checked the number.
        let declared = coding == nil ? Int(headers.contentLength ?? "0") : nil
        switch route.body {
        case .none:
            if declared == 0 { return 0 }
            throw Problem(
                .unexpectedBody, "\(route.method.rawValue) \(route.path) takes no body.",
                fix: "Send the request without a body.")
        case .raw: break
        case .json: try checkType(headers.contentType ?? "", "application/json")
        case .lines: try checkType(headers.contentType ?? "", "application/x-ndjson")
        }
        if let encoding = headers.contentEncoding, !encoding.utf8.isWord("identity") {
            throw Problem(
                .unsupportedMediaType,
                "The content encoding \"\(encoding.visible())\" is not supported.",
                field: "Content-Encoding", fix: "Send the body uncompressed.")
        }
        if let declared, declared > maximumBodyBytes, route.body != .lines { throw bodyTooLarge() }
        return declared
    }

    private func checkType(_ type: String, _ wanted: StaticString) throws(Problem) {
        let essence = type.utf8.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: " ") }
        guard essence.isWord(wanted) else {
            throw Problem(
                .unsupportedMediaType,
                type.isEmpty
                    ? "The Content-Type header is missing."
                    : "The Content-Type is \"\(type.visible())\".",
                field: "Content-Type", fix: "Send `Content-Type: \(wanted)`.")
        }
        // RFC 8259 has no such parameter, and UTF-8 alone.
        guard let charset = Self.charset(of: type), !charset.utf8.isWord("utf-8") else { return }
        throw Problem(
            .unsupportedMediaType, "The Content-Type names the charset \(charset.visible()).",
            field: "Content-Type", fix: "Send JSON in UTF-8, with `Content-Type: \(wanted)`."
        )
    }

    /// The parameter `charset` of a media type, without quotes; `nil` without one.
    private static func charset(of type: String) -> String? {
        for parameter in type.parts(separator: ";").dropFirst() {
            let bytes = parameter.lowercased().utf8.filter { !" \t\"".utf8.contains($0) }
            let text = String(decoding: bytes, as: UTF8.self)
            if let value = text.text(after: "charset=") { return String(value) }
        }
        return nil
    }

    private func expectsContinue(_ headers: RequestHeaders) throws(Problem) -> Bool {
        guard let expectation = headers.expect else { return false }
        guard expectation.utf8.isWord("100-continue") else {
            throw Problem(
                .expectationFailed, "The expectation \"\(expectation.visible())\" is not known.",
                field: "Expect", fix: "Leave the header out, or send `Expect: 100-continue`.")
        }
        return true
    }

    /// Asks a client that waits for 100 Continue to send the body.
    private static func invite(_ writer: borrowing ResponseWriter) async throws(Problem) {
        do {
            try await writer.writeInformationalHead(HTTPResponse(status: .continue))
        } catch {
            throw connectionLost
        }
    }

    private func read(
        _ body: RequestBody, _ admitted: Admitted
    ) async throws(Problem) -> [UInt8] {
        if admitted.declaredBytes == 0 { return [] }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(admitted.declaredBytes ?? 0)
        do {
            for try await part in body {
                guard bytes.count + part.readableBytes <= maximumBodyBytes else {
                    throw bodyTooLarge()
                }
                bytes += part.readableBytesView
            }
        } catch let problem as Problem {
            throw problem
        } catch {
            throw Self.connectionLost
        }
        // A broken connection ends the body without an error, so the length must be checked.
        if let declared = admitted.declaredBytes, bytes.count != declared {
            throw Self.connectionLost
        }
        return bytes
    }

    private func stream(
        of request: Request, _ admitted: Admitted, _ channel: any Channel
    ) -> BodyStream {
        BodyStream(
            body: request.body, declaredBytes: admitted.declaredBytes, channel: channel,
            admitAgain: admission(of: request, admitted, channel))
    }

    /// Checks again whether the caller may use the route.
    private func admission(
        of request: Request, _ admitted: Admitted, _ channel: any Channel
    ) -> @Sendable () throws(Problem) -> Void {
        { [route = admitted.route] () throws(Problem) in
            let headers = RequestHeaders(request.headers)
            _ = try caller(headers.authorization, for: route, channel)
        }
    }

    private static let connectionLost = Problem(
        .malformedRequest, "The connection ended in the middle of the request.",
        fix: "Send as many bytes as Content-Length says, or the last chunk, then read the answer.")

    private func bodyTooLarge() -> Problem {
        Problem(
            .tooLarge, "The body is larger than \(maximumBodyBytes) bytes.",
            fix: "Send less, or raise limits.max_packet.")
    }

    /// Logs who has changed what: every administrative request, and of a back office's changes one
    /// a second and token. Messages are logged by ``PublishLog``.
    private func logChange(
        _ request: Request, _ id: RequestID, _ admitted: Admitted, from channel: any Channel
    ) {
        let name = admitted.caller?.name ?? ""
        let metadata: Logger.Metadata = [
            LogKeys.adminToken: "\(name)",
            LogKeys.adminPeer: "\(IPAddress.text(channel.remoteAddress))",
            LogKeys.method: "\(request.method.rawValue)",
            LogKeys.path: "\((request.head.path ?? "").visible())",
            LogKeys.request: "\(id.text)",
        ]
        if admitted.route.access.scope == .admin {
            logger.info("Administrative request carried out", metadata: metadata)
        } else {
            log.write(.info, "Changed over HTTP", kind: name, metadata)
        }
    }

    /// Logs errors that concern an operator, except rejections, which the gatekeeper logs.
    private func report(
        _ problem: Problem, of request: Request, _ id: RequestID, from channel: any Channel
    ) {
        let level: Logger.Level
        switch problem.kind {
        case .internalError: level = .error
        case .overloaded: level = .warning
        case .crossOrigin, .wrongHost: level = .notice
        default: return
        }
        log.write(
            level, "Admin request refused",
            [
                LogKeys.problem: "\(problem.kind.rawValue)",
                LogKeys.method: "\(request.method.rawValue)",
                LogKeys.path: "\((request.head.path ?? "").visible())",
                LogKeys.adminPeer: "\(IPAddress.text(channel.remoteAddress))",
                LogKeys.request: "\(id.text)",
            ])
    }
}

extension Duration {
    fileprivate var microseconds: Int64 {
        components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000
    }
}
