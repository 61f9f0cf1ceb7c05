import CLinux

/// Apple's push service: a request for each device token, provider tokens made here, or certificates.
final class AppleProvider: PushProvider {
    private let settings: APNsSettings
    let routes: ServiceRoutes
    private var proofs: [APNsProof]
    /// By identity; `nil` for a certificate.
    private var tokens: [ProviderTokens?]
    private var lacksToken: [Bool]

    init(_ settings: APNsSettings, _ proofs: [APNsProof]) {
        self.settings = settings
        self.proofs = proofs
        routes = ServiceRoutes(settings)
        let identities = settings.identities
        lacksToken = identities.map { _ in false }
        tokens = zip(identities, proofs).map { identity, proof in
            guard case .key(_, let keyID, let teamID, let file) = identity, let key = proof.key
            else { return nil }
            return ProviderTokens(
                key: key, keyID: keyID, teamID: teamID, file: file, now: Self.wallClock)
        }
    }

    /// UNIX time in seconds.
    private static var wallClock: Int64 { hermes_wall_ms() / 1_000 }

    var brand: ServiceBrand { .apple }
    var mostConnections: Int { settings.connections }

    func endpoint(of service: Int) -> ServiceEndpoint {
        ServiceRoutes.environment(service) == .production ? settings.production : settings.sandbox
    }

    func tls(of service: Int) -> ServiceTLS { proofs[ServiceRoutes.identity(service)].tls }

    func use(_ credentials: PushCredentials) {
        guard case .apple(let proofs) = credentials.content else { return }
        self.proofs = proofs
        for (identity, proof) in proofs.enumerated() {
            if let key = proof.key { tokens[identity]?.use(key) }
        }
    }

    // MARK: Requests

    func token(for service: Int, at now: UInt64) -> SendingToken {
        let identity = ServiceRoutes.identity(service)
        guard tokens[identity] != nil else { return .none }
        let text = tokens[identity]?.current(now: Self.wallClock)
        lacksToken[identity] = text == nil
        guard let text else { return .missing }
        return .text(text, issuedAt: tokens[identity]?.issuedAt ?? 0)
    }

    func obstacle(of service: Int) -> String? {
        lacksToken[ServiceRoutes.identity(service)] ? "no provider token can be made yet" : nil
    }

    func fill(
        _ fields: inout RequestFields, _ request: NotificationRequest, to service: Int,
        _ token: String?
    ) {
        fields.add(":method", "POST")
        fields.add(":scheme", "https")
        fields.add(":authority", endpoint(of: service).host)
        fields.add(":path", "/3/device/", hexadecimal: request.token)
        if let token { fields.add("authorization", "bearer \(token)") }
        fields.add("apns-topic", request.topic)
        fields.add("apns-push-type", request.pushType)
        fields.add("apns-priority", request.priorityText)
        fields.add("apns-expiration", "\(request.expiration)", isUnique: true)
        if request.collapses {
            fields.add("apns-collapse-id", request.collapseID, isUnique: true)
        }
        fields.add("apns-id", uuid: request.notificationID)
    }

    // MARK: Answers

    func answer(_ status: Int, _ body: [UInt8], retryAfter: UInt64?) -> ProviderAnswer {
        ProviderAnswer(AppleAnswer(status: status, body: body))
    }

    func isMended(
        _ answer: ProviderAnswer, _ issuedAt: Int64, on service: Int, at now: UInt64
    ) -> Bool {
        let identity = ServiceRoutes.identity(service)
        guard tokens[identity] != nil else { return false }
        let now = Self.wallClock
        switch answer.meaning {
        case .accepted:
            tokens[identity]?.accepted(issuedAt)
            return false
        case .credentials: return tokens[identity]?.refused(issuedAt, now: now) ?? false
        case .expiredToken: return tokens[identity]?.expired(issuedAt, now: now) ?? false
        case .tooManyTokens: return tokens[identity]?.tooMany(issuedAt, now: now) ?? false
        // The next connection begins with the token in use.
        case .otherKey: return true
        case .gone, .unknownDevice, .unfitKey, .topic, .busyDevice, .busyService, .service,
            .closing,
            .refused:
            return false
        }
    }

    // MARK: Errands, of which there are none: keys are files

    func missingToken(of service: Int) -> Int? { nil }

    func owesErrand(on service: Int, isWanted: Bool, at now: UInt64) -> Bool { false }

    func fillErrand(
        _ fields: inout RequestFields, on service: Int, at now: UInt64
    ) -> [UInt8]? { nil }

    func errandAnswered(
        on service: Int, _ status: Int, _ body: [UInt8], retryAfter: UInt64?, at now: UInt64
    ) {}

    func errandLost(on service: Int, at now: UInt64) {}
}
