import CLinux

/// Google's Firebase Cloud Messaging (HTTP v1): a request for each message, access tokens by a service
/// account from Google's token service.
///
/// An identity has two services: the first takes messages, and the second is the token service.
final class GoogleProvider: PushProvider {
    private let settings: FCMSettings
    let routes: ServiceRoutes
    private var files: FCMFiles
    /// By identity.
    private var tokens: [AccessTokens]

    init(_ settings: FCMSettings, _ files: FCMFiles) {
        self.settings = settings
        self.files = files
        routes = ServiceRoutes(settings)
        tokens = files.accounts.map { _ in AccessTokens() }
    }

    /// UNIX time in seconds.
    private static var wallClock: Int64 { hermes_wall_ms() / 1_000 }

    var brand: ServiceBrand { .google }
    var mostConnections: Int { settings.connections }

    private static func isOfTokens(_ service: Int) -> Bool { service % 2 == 1 }

    private func account(of service: Int) -> ServiceAccount {
        files.accounts[ServiceRoutes.identity(service)]
    }

    func endpoint(of service: Int) -> ServiceEndpoint {
        Self.isOfTokens(service) ? account(of: service).tokenHost : settings.endpoint
    }

    func tls(of service: Int) -> ServiceTLS { files.tls }

    func use(_ credentials: PushCredentials) {
        guard case .google(let files) = credentials.content else { return }
        for (identity, account) in files.accounts.enumerated()
        where !account.equals(self.files.accounts[identity]) {
            tokens[identity].reset()
        }
        self.files = files
    }

    // MARK: Messages

    func token(for service: Int, at now: UInt64) -> SendingToken {
        tokens[ServiceRoutes.identity(service)].current(at: now)
            .map { .text($0.text, issuedAt: $0.number) } ?? .missing
    }

    func obstacle(of service: Int) -> String? {
        let tokens = tokens[ServiceRoutes.identity(service)]
        guard !Self.isOfTokens(service), tokens.current(at: hermes_monotonic_ms()) == nil else {
            return nil
        }
        return tokens.failure.map {
            "no access token, says \(account(of: service).tokenHost.host): \($0)"
        }
    }

    func fill(
        _ fields: inout RequestFields, _ request: NotificationRequest, to service: Int,
        _ token: String?
    ) {
        fields.add(":method", "POST")
        fields.add(":scheme", "https")
        fields.add(":authority", settings.endpoint.host)
        fields.add(":path", "/v1/projects/\(account(of: service).projectID)/messages:send")
        if let token { fields.add("authorization", "Bearer \(token)") }
        fields.add("content-type", "application/json")
    }

    func answer(_ status: Int, _ body: [UInt8], retryAfter: UInt64?) -> ProviderAnswer {
        ProviderAnswer(GoogleAnswer(status: status, body: body), retryAfter: retryAfter)
    }

    func isMended(
        _ answer: ProviderAnswer, _ issuedAt: Int64, on service: Int, at now: UInt64
    ) -> Bool {
        guard answer.meaning == .expiredToken else { return false }
        return tokens[ServiceRoutes.identity(service)].refused(issuedAt, at: now)
    }

    // MARK: Tokens

    func missingToken(of service: Int) -> Int? {
        !Self.isOfTokens(service) && token(for: service, at: hermes_monotonic_ms()) == .missing
            ? service + 1 : nil
    }

    func owesErrand(on service: Int, isWanted: Bool, at now: UInt64) -> Bool {
        isWanted && Self.isOfTokens(service)
            && tokens[ServiceRoutes.identity(service)].isDue(at: now)
    }

    func fillErrand(
        _ fields: inout RequestFields, on service: Int, at now: UInt64
    ) -> [UInt8]? {
        let account = account(of: service)
        tokens[ServiceRoutes.identity(service)].asked()
        guard let body = account.tokenRequest(at: Self.wallClock) else {
            tokens[ServiceRoutes.identity(service)].lost(at: now)
            return nil
        }
        fields.add(":method", "POST")
        fields.add(":scheme", "https")
        fields.add(":authority", account.tokenHost.host)
        fields.add(":path", account.tokenPath)
        fields.add("content-type", "application/x-www-form-urlencoded")
        return body
    }

    func errandAnswered(
        on service: Int, _ status: Int, _ body: [UInt8], retryAfter: UInt64?, at now: UInt64
    ) {
        tokens[ServiceRoutes.identity(service)].answered(
            status, body, retryAfter: retryAfter, at: now)
    }

    func errandLost(on service: Int, at now: UInt64) {
        tokens[ServiceRoutes.identity(service)].lost(at: now)
    }
}
