/// How the broker learns whether a password is a user's. Both are called on the authenticator's thread.
package struct PasswordCheck: Sendable {
    package typealias Ask = @Sendable (_ userName: [UInt8], _ password: [UInt8]) -> Bool

    /// True when it is known from a short while ago that the password is right; takes microseconds.
    /// False says nothing.
    package let recall: Ask
    /// True when the password is right; may take tens of milliseconds.
    package let verify: Ask

    package init(recall: @escaping Ask, verify: @escaping Ask) {
        self.recall = recall
        self.verify = verify
    }

    /// What became of a request.
    package enum Outcome: Hashable, Sendable {
        case right
        case wrong
        /// Not checked: too many wait already.
        case busy
    }
}
