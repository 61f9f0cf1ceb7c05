import BrokerAPI

extension MetricFamily {
    /// Figures of bans, lockouts and drains.
    static let bans: [MetricFamily] = [
        .gauge(
            "hermes_lockouts", "Users and addresses that are locked out after wrong passwords."
        ) { $0.lockouts },
        .counter("hermes_lockouts_begun_total", "Such locks that have begun.") {
            $0.lockoutsBegun
        },
        .gauge("hermes_bans", "Clients, users and networks that are shut out.") { $0.bans },
        .counters(
            "hermes_ban_refusals_total", by: "kind",
            "Connections and CONNECTs that bans refused, by what was banned.", { $0.bansMet }),
        .gauge(
            "hermes_draining",
            "1 while an operator moves the clients elsewhere (POST /v1/drain) and nobody may connect."
        ) { $0.isDraining ? 1 : 0 },
    ]
}
