import Store
import Structures

/// What sessions of clients of MQTT 5.0 keep beyond others: how long they outlive their connection,
/// and the times of their wills. A client of 3.1.1 that resumes such a session ends its terms.
package struct SessionTerms: BitwiseCopyable, Hashable {
    /// Seconds; the largest number for a session without end.
    package var expiry: UInt32
    package var will: WillTimes

    package init(expiry: UInt32, will: WillTimes = .none) {
        self.expiry = expiry
        self.will = will
    }
}

/// The terms of all sessions that have some, by session index.
package struct AllSessionTerms: ~Copyable {
    /// Never read; see the same in ``Shard``.
    private let addressOnly: any Sendable = ()
    private var terms: [UInt32: SessionTerms] = [:]

    package init() {}

    package var isEmpty: Bool { terms.isEmpty }

    /// `nil` for a session of an earlier version.
    package subscript(session: UInt32) -> SessionTerms? {
        get { terms.isEmpty ? nil : terms[session] }
        set { terms[session] = newValue }
    }
}

extension FactTable {
    /// Key: the session's number. Value: the expiry, the will's delay, and its expiry if it has any;
    /// all in seconds.
    package static var sessionTerms: FactTable { FactTable(number: 64, name: "session_terms") }
}

extension WriteBatch {
    package mutating func terms(
        _ terms: SessionTerms, of session: UInt64, _ owner: FactOwner
    ) {
        fact(.sessionTerms, of: owner, key: { $0.put(session) }) {
            $0.put(terms.expiry)
            $0.put(terms.will.delay)
            if let expiry = terms.will.expiry { $0.put(expiry) }
        }
    }

    package mutating func termsRemoved(of session: UInt64, _ owner: FactOwner) {
        factRemoved(.sessionTerms, of: owner) { $0.put(session) }
    }
}

extension SessionTerms {
    /// The session's number and its terms, as a start hands them back.
    package static func read(
        _ fact: StoredFact
    ) throws(DamagedFact) -> (session: UInt64, terms: SessionTerms) {
        var key = FactReader(fact.key)
        let session = try key.number()
        var value = FactReader(fact.value)
        var terms = SessionTerms(expiry: try value.count())
        terms.will.delay = try value.count()
        if !value.isAtEnd { terms.will.expiry = try value.count() }
        return (session, terms)
    }
}
