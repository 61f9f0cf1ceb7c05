/// What a token must say to be a login here.
package struct TokenPolicy: Equatable, Sendable {
    /// The issuer (`iss`); `nil` accepts any, also none.
    package var issuer: String?
    /// A token is for one of these (`aud`). Empty accepts only tokens that are for nobody in
    /// particular: one that names an audience is meant for another service.
    package var audiences: [String]
    /// The claim that names the user.
    package var userClaim: String
    /// The claims with lists of topic filters; a token without them is held to the rules alone.
    package var publishClaim: String
    package var subscribeClaim: String
    /// By how much clocks may differ: 0 to ``mostLeeway`` seconds.
    package var leewaySeconds: Int64
    /// Whether a token without an end (`exp`) is refused.
    package var requiresExpiry: Bool

    package static let mostLeeway: Int64 = 300

    package init(
        issuer: String? = nil, audiences: [String] = [], userClaim: String = "sub",
        publishClaim: String = "publish", subscribeClaim: String = "subscribe",
        leewaySeconds: Int64 = 30, requiresExpiry: Bool = true
    ) {
        precondition(0...Self.mostLeeway ~= leewaySeconds, "a leeway of \(leewaySeconds) s")
        self.issuer = issuer
        self.audiences = audiences
        self.userClaim = userClaim
        self.publishClaim = publishClaim
        self.subscribeClaim = subscribeClaim
        self.leewaySeconds = leewaySeconds
        self.requiresExpiry = requiresExpiry
    }
}
