import BrokerAPI
import Authorization
import MQTTCodec
import Structures
import TLS

/// All that other threads tell a broker's loop.
package enum ShardMessage: Sendable {
    case authenticated(Handle, refusal: Connack.ReturnCode?)
    /// A step of a TLS handshake has ended.
    case handshake(Handle, TLSHandshake.Outcome)
    /// Certificates and rules for the next handshakes, by listener; one that serves plain TCP goes on so.
    case certificates([TLSContext?])
    /// The admin plane asks.
    case command(BrokerCommand)
    /// Limits that count from now on.
    case limits(BrokerLimits)
    /// Other access rules from now on; `nil` allows everything.
    case access(AccessRules?)
    /// Stop accepting, send what waits, close, and end the loop; a second one ends the sending.
    case stop
}
