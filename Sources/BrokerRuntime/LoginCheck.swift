import BrokerCore

/// Decides about passwords and tokens, in two steps. Both run on the authenticator's thread.
package struct LoginCheck: Sendable {
    /// What a look at what is remembered says; it takes microseconds.
    package enum Recollection: Sendable {
        case known(LoginAnswer)
        /// A full check takes at most some hundred microseconds: a signature.
        case quick
        /// A full check may take tens of milliseconds: a password.
        case slow
    }

    package let recall: @Sendable (AuthenticationRequest) -> Recollection
    /// The full check.
    package let verify: @Sendable (AuthenticationRequest) -> LoginAnswer

    package init(
        recall: @escaping @Sendable (AuthenticationRequest) -> Recollection,
        verify: @escaping @Sendable (AuthenticationRequest) -> LoginAnswer
    ) {
        self.recall = recall
        self.verify = verify
    }
}
