import AdminModel
import Authorization
import MQTTCodec
import Structures
import TLS

/// What other threads ask of a shard, by value; answers go back by the closure, on the shard's thread.
package enum ShardMessage: Sendable {
    case authenticated(Handle, refusal: Connack.ReturnCode?)
    /// What a step of a TLS handshake came to.
    case handshake(Handle, TLSHandshake.Outcome)
    /// Certificates and rules for the next handshakes, by listener; one that serves plain TCP goes on so.
    case certificates([TLSContext?])
    case status(@Sendable (StatusModel) -> Void)
    /// The answer leaves process figures to whoever shows them.
    case figures(@Sendable (BrokerFigures) -> Void)
    /// `nil` when the shard stops.
    case clients(ClientQuery, @Sendable (ClientPage?) -> Void)
    case client([UInt8], @Sendable (ClientDetail?) -> Void)
    case disconnect([UInt8], @Sendable (Bool) -> Void)
    /// A page of what a client is owed, from a position on.
    case queue([UInt8], from: UInt64, limit: Int, @Sendable (QueueAnswer) -> Void)
    /// Drops what waits for a client below a position; `nil` is the end of its queue.
    case dropQueue([UInt8], below: UInt64?, @Sendable (QueueDropAnswer) -> Void)
    case publish(InboundPublication, @Sendable (PublishAnswer) -> Void)
    /// Limits that count from now on; its listeners are not looked at.
    case limits(BrokerSettings)
    /// Other access rules from now on; `nil` allows everything.
    case access(AccessRules?)
    /// Stop accepting, send what waits, close, and end the loop; a second one ends the sending.
    case stop
}
