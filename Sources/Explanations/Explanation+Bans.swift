import BrokerAPI

/// Words about bans and lockouts.
extension Explanation {
    var bans: [String] {
        history.bans.map { Self.words(of: $0, now: now) }
            + history.lockouts.map { Self.words(of: $0, now: now) }
    }

    /// Says which user or address is locked out, until when, and how to end that.
    static func words(of lockout: Lockout, now: Int64) -> String {
        let whom = lockout.userName.map { "Its user \($0) is locked out at" } ?? "Locked out is"
        return "\(whom) \(lockout.address) for another "
            + "\(Spans.age(of: now, now: lockout.untilMs)), after "
            + "\(lockout.wrongPasswords) wrong passwords. End that with: hermesctl lockouts clear "
            + "--address \(lockout.address)"
    }

    /// Says which client, user or network a ban shuts out, until when, why, and how to lift it.
    static func words(of ban: BanModel, now: Int64) -> String {
        let whom =
            if let user = ban.userName {
                "Its user \(user) is banned"
            } else if let address = ban.address {
                "Its address is banned (\(address))"
            } else {
                "It is banned"
            }
        let until = ban.expiresMs.map { "for another \(Spans.age(of: now, now: $0))" }
        let why = ban.reason.isEmpty ? "" : ": \(ban.reason)"
        let author = ban.by.isEmpty ? "" : ", by \(ban.by)"
        return "\(whom) \(until ?? "until the ban is lifted")\(author)\(why). "
            + "Lift it with: hermesctl bans lift \(ban.id)"
    }
}
