/// The two ways to check a password. Both run on the authenticator's thread.
package struct PasswordCheck: Sendable {
    package typealias Ask = @Sendable (_ userName: [UInt8], _ password: [UInt8]) -> Bool

    /// True if the password was correct a short while ago, false if unknown; takes microseconds.
    package let recall: Ask
    /// True when the password is correct; may take tens of milliseconds.
    package let verify: Ask

    package init(recall: @escaping Ask, verify: @escaping Ask) {
        self.recall = recall
        self.verify = verify
    }

    /// The result of a request.
    package enum Outcome: Hashable, Sendable {
        case right
        case wrong
        /// Not checked, because too many requests wait.
        case busy
    }
}
