/// How much of what all share each owner takes.
struct OwnerShares<Owner: Hashable> {
    /// Owners that take nothing have no entry.
    private var taken: [Owner: Int] = [:]

    func taken(by owner: Owner) -> Int { taken[owner, default: 0] }

    /// Counts what an owner takes more; less than 0 for what it gives back.
    mutating func change(_ owner: Owner, by amount: Int) {
        let now = taken(by: owner) + amount
        taken[owner] = now > 0 ? now : nil
    }
}

/// The rule by which one limit is divided among owners.
enum SharedLimit {
    /// How many times the free room one owner may take.
    private static var shareOfFree: Int { 3 }

    /// Decides whether an owner may take more of a limit.
    ///
    /// One may take three times what is free: three quarters of the limit while it is alone, and
    /// less the more there are, so a newcomer always finds room. It may take all of a limit of 3.
    ///
    /// - Parameters:
    ///   - amount: What it asks for, at least 0.
    ///   - own: What it takes already.
    ///   - total: What all take together.
    ///   - limit: The most that all may take.
    /// - Returns: True when it may.
    static func admits(_ amount: Int, own: Int, total: Int, limit: Int) -> Bool {
        let free = limit - total
        return amount <= free && own <= shareOfFree * free
    }
}
