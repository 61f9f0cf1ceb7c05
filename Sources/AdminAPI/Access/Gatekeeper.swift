import Addresses
import Credentials
import Hummingbird
import Logging
import NIOCore
import OperatorLog
import Synchronization

/// Authenticates and authorises requests; counts and logs rejections. A server has one for all
/// listeners.
final class Gatekeeper: Sendable {
    private let adminToken: AdminToken
    private let tokens: TokenChecks?
    private let counters: AdminCounters
    private let logger: Logger
    private let budget: Mutex<FailureBudget>
    private let lines: FloodLog

    init(
        adminToken: AdminToken, tokens: TokenChecks?, failuresPerMinute: Int,
        counters: AdminCounters, logger: Logger
    ) {
        self.adminToken = adminToken
        self.tokens = tokens
        self.counters = counters
        self.logger = logger
        budget = Mutex(FailureBudget(perMinute: failuresPerMinute))
        lines = FloodLog(logger: logger, maximumKeys: 1_024)
    }

    /// Finds the caller of a request that needs a scope.
    ///
    /// - Parameters:
    ///   - authorization: The header of that name; `nil` without one.
    ///   - scope: The scope of the route.
    ///   - peer: The address of the request.
    /// - Returns: The caller, which has the scope.
    /// - Throws: ``Problem``: 401 without a valid token, 429 after too many wrong ones, 403 without
    ///   the scope.
    func admit(
        _ authorization: String?, needing scope: TokenScope, from peer: SocketAddress?
    ) throws(Problem) -> Caller {
        let caller = try identify(authorization, peer)
        if caller.scopes.grant(scope) { return caller }
        counters.count(.missingScope)
        log(.missingScope, of: caller.name, from: peer) { metadata in
            metadata[LogKeys.adminScope] = "\(scope.rawValue)"
            logger.notice("Token lacks a scope", metadata: metadata)
        }
        throw Problem(
            .missingScope,
            "The token \"\(caller.name)\" has the scopes \(caller.scopes); this request needs "
                + "\(scope.rawValue).",
            field: "Authorization",
            fix: "Use a token with that scope; hermesctl tokens create NAME --scope "
                + "\(scope.rawValue) makes one.",
            headers: [
                .wwwAuthenticate:
                    "Bearer realm=\"hermes\", error=\"insufficient_scope\", "
                    + "scope=\"\(scope.rawValue)\""
            ])
    }

    private func identify(
        _ authorization: String?, _ peer: SocketAddress?
    ) throws(Problem) -> Caller {
        let parts = (authorization ?? "").utf8.split(separator: UInt8(ascii: " "))
        if parts.isEmpty {
            throw refusal(
                .missingToken, peer,
                Problem(
                    .unauthorized, "The request has no Authorization header.",
                    field: "Authorization", fix: Self.howToAuthenticate,
                    headers: [.wwwAuthenticate: "Bearer realm=\"hermes\""]))
        }
        guard parts.count == 2, parts[0].isWord("bearer") else {
            throw refusal(
                .unknownToken, peer,
                Self.invalid("The Authorization header does not hold a bearer token."))
        }
        let presented = parts[1]
        if adminToken.matches(presented) { return .admin }
        guard let entry = tokens?.entry(of: presented) else {
            throw refusal(
                .unknownToken, peer,
                Self.invalid("The Authorization header holds no token that is known here."))
        }
        if entry.isExpired(at: .now()), let expires = entry.expires {
            throw refusal(
                .expiredToken, of: entry.name.text, peer,
                Self.invalid("The token \"\(entry.name)\" expired at \(expires)."))
        }
        return Caller(entry)
    }

    /// Counts and logs a rejection, and returns the answer.
    private func refusal(
        _ reason: AdminCounters.Refusal, of token: String? = nil, _ peer: SocketAddress?,
        _ problem: Problem
    ) -> Problem {
        // Only an unknown token may be a guess.
        let retryAfterSeconds: Int? =
            if reason == .unknownToken {
                budget.withLock { $0.charge(IPAddress(peer).prefix, at: .now) }
            } else {
                nil
            }
        counters.count(retryAfterSeconds == nil ? reason : .tooManyFailures)
        log(reason, of: token, from: peer) { metadata in
            metadata[LogKeys.adminReason] = "\(reason.rawValue)"
            logger.notice("Admin request without a good token", metadata: metadata)
        }
        guard let seconds = retryAfterSeconds else { return problem }
        log(.tooManyFailures, of: nil, from: peer) { metadata in
            // The address has to wait, whatever its port.
            metadata[LogKeys.adminPeer] = "\(IPAddress(peer).prefix.text)"
            metadata[LogKeys.retryAfter] = "\(seconds)"
            metadata[LogKeys.setting] = "admin.max_failures"
            logger.warning(
                "Admin requests answered 429, their address presents too many unknown tokens",
                metadata: metadata)
        }
        return Problem(
            .tooManyFailures,
            "Too many requests from this address had a token that is not known here.",
            field: "Authorization",
            fix: "Send a good token, or wait for the seconds named in Retry-After; "
                + "admin.max_failures sets how many there may be in a minute.",
            headers: [.retryAfter: "\(seconds)"])
    }

    /// Writes a line if one is due, with the metadata common to all.
    private func log(
        _ reason: AdminCounters.Refusal, of token: String?, from peer: SocketAddress?,
        _ write: (inout Logger.Metadata) -> Void
    ) {
        let subject = Subject(reason: reason, network: IPAddress(peer).prefix, token: token)
        let heldBack = lines.admit {
            $0.admit(subject, every: .seconds(60), in: reason, atMilliseconds: $1)
        }
        guard let heldBack else { return }
        var metadata: Logger.Metadata = [LogKeys.adminPeer: "\(IPAddress.text(peer))"]
        if let token { metadata[LogKeys.adminToken] = "\(token)" }
        if heldBack.ofGroup > heldBack.ofKey {
            metadata[LogKeys.suppressedOfAll] = "\(heldBack.ofGroup)"
        }
        metadata = metadata.suppressing(heldBack.ofKey)
        write(&metadata)
    }

    /// Rejections that share one line a minute. Each reason also has one line a second over all
    /// addresses, so that many of them cannot fill the disk.
    private struct Subject: Hashable {
        var reason: AdminCounters.Refusal
        var network: IPNetwork
        /// The name of a known token; `nil` without one.
        var token: String?
    }

    private static func invalid(_ detail: String) -> Problem {
        Problem(
            .unauthorized, detail, field: "Authorization", fix: howToAuthenticate,
            headers: [
                .wwwAuthenticate: "Bearer realm=\"hermes\", error=\"invalid_token\""
            ])
    }

    private static let howToAuthenticate =
        "Send `Authorization: Bearer TOKEN`; hermesctl tokens create makes one, and admin.token in "
        + "the data directory holds the administrator's."
}
