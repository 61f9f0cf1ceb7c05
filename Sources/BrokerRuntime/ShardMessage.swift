import BrokerAPI
import Authorization
import BrokerCore
import BrokerFeatures
import Structures
import TLS

/// Messages from other threads to a broker's loop.
package enum ShardMessage: Sendable {
    /// A login has been checked; `mayBeGuess` is that of its request.
    case authenticated(Handle, LoginAnswer, mayBeGuess: Bool)
    /// A step of a TLS handshake has ended.
    case handshake(Handle, TLSHandshake.Outcome)
    /// Certificates and rules for new handshakes, by listener; plain listeners stay plain.
    case certificates([TLSContext?])
    /// A command of the admin plane.
    case command(BrokerCommand)
    /// New limits.
    case limits(BrokerLimits)
    /// New access rules; `nil` allows everything.
    case access(AccessRules?)
    /// Stop accepting, send the output, close, and end the loop; a second one skips the sending.
    case stop

    /// True for the answer to a client that is not connected yet.
    var isOfNewcomer: Bool {
        switch self {
        case .authenticated, .handshake: true
        case .certificates, .command, .limits, .access, .stop: false
        }
    }
}
