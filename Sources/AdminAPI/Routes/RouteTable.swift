import BrokerAPI
import Credentials
import Hummingbird
import PlainText
import RequestText

/// The callers that may use a route, and what it does about the bounds of their tokens.
enum RouteAccess: Sendable, Equatable {
    /// Anyone who reaches the listener.
    case open
    /// Callers with a token of that scope, and all callers on the Unix socket.
    case scope(TokenScope, topics: TopicBound, rate: RateBound)

    /// For administrators, whose tokens nothing bounds.
    static let admin = RouteAccess.scope(.admin, topics: .refused, rate: .untouched)

    /// For callers that read, which counts against no rate.
    static func reading(_ topics: TopicBound) -> RouteAccess {
        .scope(.read, topics: topics, rate: .untouched)
    }

    /// `nil` for open routes.
    var scope: TokenScope? {
        switch self {
        case .open: nil
        case .scope(let scope, _, _): scope
        }
    }
}

/// What a route does about a caller whose token is bound to topics. The raw value is that of the
/// OpenAPI document.
enum TopicBound: String, Sendable {
    /// The request names topics, and the handler asks for each whether it is among the token's.
    case checked
    /// What it shows or changes lies on topics; for those that are not the token's, the handler
    /// answers as if there were nothing.
    case filtered
    /// It concerns what lies on no topic, such as a client, its session, its device or its tags, so
    /// such a caller is refused before the handler.
    case refused
    /// It tells of the broker alone, and of no topic and no client.
    case untouched
}

/// What a route counts against the rate of a caller's token. The raw value is that of the OpenAPI
/// document.
enum RateBound: String, Sendable {
    /// Each message that is published; the handler counts them, and leaves repeats out.
    case messages
    /// Each request as one message, before the handler.
    case requests
    /// Nothing: it publishes no message and adds nothing that is kept.
    case untouched
}

/// The body that a route expects.
enum RouteBody: Sendable {
    /// No body.
    case none
    /// Any bytes of any type.
    case raw
    /// JSON, declared by Content-Type.
    case json
    /// Lines of JSON, declared by Content-Type, which are read while they are answered.
    case lines
}

/// One method of one path.
struct Route: Sendable {
    var method: HTTPRequest.Method
    /// Such as `/v1/clients/{id}`; a part in braces matches one non-empty segment.
    var path: String
    var access: RouteAccess
    var body: RouteBody = .none
    /// Names of the query parameters; others are errors.
    var query: [String] = []
    /// True for an answer that goes on until somebody ends it.
    var isStream = false
    /// True when the header If-Match makes the request conditional; elsewhere it is an error.
    var honoursIfMatch = false
    var handler: @Sendable (RouteRequest) async throws(Problem) -> Response

    var publishesMessages: Bool {
        if case .scope(_, _, rate: .messages) = access { true } else { false }
    }

    /// True for what an operator wants to know the author of: every administrative request, and
    /// what changes or cancels something. Messages to publish are none.
    var isChange: Bool {
        access.scope == .admin || method == .put || method == .patch || method == .delete
    }
}

/// A request after routing, authentication and reading of its body.
struct RouteRequest: Sendable {
    /// Decoded values of the path's parts in braces.
    var parameters: [String: String]
    var query: QueryItems
    /// Empty for a route that reads ``RouteBody/lines``.
    var body: [UInt8]
    /// The body to read, for such a route.
    var stream: BodyStream?
    /// For a route whose answer goes on: throws when the caller may not use it any more, as after
    /// its token was revoked.
    var admitAgain: (@Sendable () throws(Problem) -> Void)?
    /// `nil` on open routes.
    var caller: Caller?
    /// The header Idempotency-Key, on routes that publish one message.
    var idempotencyKey: String?

    /// The header If-Match, on routes that honour it.
    var ifMatch: String?

    /// True for HEAD, which gets the head of GET's answer alone.
    var isHead = false

    /// The name in the header Host, without the port: `localhost`, `192.0.2.7`, `[::1]`.
    var hostName: String

    /// The value of a part in braces.
    func parameter(_ name: String) -> String {
        guard let value = parameters[name] else {
            preconditionFailure("route without the parameter {\(name)}")
        }
        return value
    }

    /// False for a message that the caller must not know of: a token that is bound to topics learns
    /// nothing of others.
    func maySee(_ topic: String) -> Bool { caller?.bounds.allow(Array(topic.utf8)) ?? true }

    /// An identifier in the request, as its caller means it.
    func owned(_ name: String) -> OwnedName {
        caller?.owned(name) ?? OwnedName(Array(name.utf8), of: .unknown)
    }
}

/// Finds the route of a request. Unlike Hummingbird's router, it distinguishes a wrong method from
/// a wrong path, and decodes `%2F` after splitting.
struct RouteTable: Sendable {
    let routes: [Route]
    private let patterns: [[Substring]]

    init(_ routes: [Route]) {
        self.routes = routes
        patterns = routes.map { $0.path.dropFirst().parts(separator: "/") }
    }

    /// The route for a method and target with its place in ``routes``, and decoded path parameters.
    /// HEAD uses the route of GET.
    ///
    /// - Throws: ``Problem`` of kind `routeNotFound`, or `methodNotAllowed` with `Allow`.
    func match(
        _ method: HTTPRequest.Method, _ target: RequestTarget
    ) throws(Problem) -> (number: Int, route: Route, parameters: [String: String]) {
        let wanted = method == .head ? .get : method
        var allowed: [String] = []
        for (number, pattern) in patterns.enumerated() where Self.fits(pattern, target.segments) {
            let route = routes[number]
            if route.method == wanted {
                return (number, route, try Self.parameters(pattern, target.segments))
            }
            allowed.append(route.method.rawValue)
            if route.method == .get { allowed.append("HEAD") }
        }
        let path = "/" + target.segments.joined(separator: "/")
        if allowed.isEmpty {
            throw Problem(
                .routeNotFound, "There is nothing at \(path.visible()).",
                fix: "GET /v1/openapi.json lists the routes.")
        }
        let list = allowed.joined(separator: ", ")
        throw Problem(
            .methodNotAllowed, "\(path.visible()) does not have the method \(method.rawValue).",
            fix: "Use \(list).", headers: [.allow: list])
    }

    private static func fits(_ pattern: [Substring], _ segments: [Substring]) -> Bool {
        pattern.count == segments.count
            && zip(pattern, segments).allSatisfy { part, segment in
                part.begins(with: "{") ? !segment.isEmpty : part.hasBytes(of: segment)
            }
    }

    private static func parameters(
        _ pattern: [Substring], _ segments: [Substring]
    ) throws(Problem) -> [String: String] {
        var parameters: [String: String] = [:]
        for (part, segment) in zip(pattern, segments) where part.begins(with: "{") {
            let name = String(part.dropFirst().dropLast())
            guard let value = percentDecoded(segment) else {
                throw Problem(
                    .invalidField,
                    "The path part \"\(String(segment).visible())\" is not percent-encoded UTF-8.",
                    field: name,
                    fix: "Write every byte outside letters, digits, `-`, `.`, `_` and `~` as %XX.")
            }
            parameters[name] = value
        }
        return parameters
    }
}
