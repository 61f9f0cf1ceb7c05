import BrokerCore
import BrokerFeatures

/// Decides about logins, in two steps. Both run on the authenticator's thread.
package struct LoginCheck: Sendable {
    /// What a look at what is remembered says; it takes microseconds.
    package enum Recollection: Sendable {
        case known(LoginAnswer)
        /// A full check takes at most some hundred microseconds: a signature.
        case quick
        /// A full check may take tens of milliseconds: a password.
        case slow
        /// Somebody else is asked, through ``LoginCheck/ask``.
        case elsewhere
    }

    /// True when clients whose certificates name them are checked, too.
    package let asksBeforeCertificates: Bool
    /// False when no password is checked that could be guessed: a signature decides, or nothing does.
    package let mayBeGuess: @Sendable (AuthenticationRequest) -> Bool
    package let recall: @Sendable (AuthenticationRequest) -> Recollection
    /// The full check.
    package let verify: @Sendable (AuthenticationRequest) -> LoginAnswer
    /// Begins a question to somebody else, and returns at once. Its outcome comes once, on any thread.
    /// `nil` when nobody else is ever asked.
    package let ask: Ask?

    /// What came of a question to somebody else.
    package enum Asked: Sendable {
        case decided(LoginAnswer)
        /// So many sources in their order do not know the login, and the next one decides.
        case passed(sources: Int)
    }

    package typealias Ask =
        @Sendable (AuthenticationRequest, _ then: @escaping @Sendable (Asked) -> Void) -> Void

    package init(
        asksBeforeCertificates: Bool = false,
        mayBeGuess: @escaping @Sendable (AuthenticationRequest) -> Bool = { $0.mayBeGuess },
        recall: @escaping @Sendable (AuthenticationRequest) -> Recollection,
        verify: @escaping @Sendable (AuthenticationRequest) -> LoginAnswer,
        ask: Ask? = nil
    ) {
        self.asksBeforeCertificates = asksBeforeCertificates
        self.mayBeGuess = mayBeGuess
        self.recall = recall
        self.verify = verify
        self.ask = ask
    }
}
