import Authorization

/// Parses rules that must be valid.
func rules(_ text: String) throws -> AccessRules {
    try AccessRules(parsing: Array(text.utf8), path: "acl")
}

extension AccessRules {
    /// The decision for names and topics as text; without a user name the client is anonymous.
    func decide(
        _ action: AccessAction, _ topic: String, user: String? = nil, client: String = "client"
    ) -> AccessVerdict {
        decide(action, topic, user: user.map { Array($0.utf8) }, client: Array(client.utf8))
    }

    func decide(
        _ action: AccessAction, _ topic: String, user: [UInt8]?, client: [UInt8]
    ) -> AccessVerdict {
        ask(user, client) { subject in
            Array(topic.utf8).withUnsafeBytes { decide(action, topic: $0, for: subject) }
        }
    }

    func subscription(
        _ filter: String, user: String? = nil, client: String = "client"
    ) -> SubscriptionVerdict {
        ask(user.map { Array($0.utf8) }, Array(client.utf8)) { subject in
            Array(filter.utf8).withUnsafeBytes { decideSubscription(filter: $0, for: subject) }
        }
    }

    /// The cost of a question in steps.
    func steps(_ filter: String, client: String = "client") -> Int {
        var steps = 0
        _ = ask(nil, Array(client.utf8)) { subject in
            Array(filter.utf8).withUnsafeBytes {
                decideSubscription(filter: $0, for: subject, steps: &steps)
            }
        }
        return steps
    }

    private func ask<Answer>(
        _ user: [UInt8]?, _ client: [UInt8], _ question: (AccessSubject) -> Answer
    ) -> Answer {
        client.withUnsafeBytes { client in
            guard let user else {
                return question(AccessSubject(userName: nil, clientID: client))
            }
            return user.withUnsafeBytes { user in
                question(AccessSubject(userName: user, clientID: client))
            }
        }
    }
}
