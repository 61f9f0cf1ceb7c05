import MQTTCore
import Structures

/// One network connection as its shard sees it; at the index that the reactor gave it.
///
/// The parts keep their own state; this record only holds them together, in an order that leaves few gaps,
/// because a broker has many idle connections.
struct Connection: BitwiseCopyable {
    /// 0 while the record is unused.
    let generation: UInt32
    /// The session, once CONNECT has been accepted.
    var session: UInt32 = noIndex
    /// The deadline of CONNECT first, then the keep alive.
    var timer: UInt32 = noIndex
    /// A key of the peer's address; 0 while that is not known.
    var origin: UInt32
    /// The listener that accepted it.
    let listener: UInt8
    var machine = ConnectionMachine()
    var keepAlive = KeepAlive()
    var intake = Intake()
    var outlet = Outlet()
    var will: Message?
    /// A topic to which the client may publish without another question to the access rules.
    var permit: PublishPermit?

    init(generation: UInt32, listener: UInt8, origin: UInt32) {
        self.generation = generation
        self.listener = listener
        self.origin = origin
    }

    /// Moves the acknowledgements that may leave to the output; returns how many, and of which kinds.
    mutating func releaseAcknowledgements(
        pool: BytePool, isCommitted: (UInt64) -> Bool
    ) -> (count: Int, types: AcknowledgementQueue.Types) {
        outlet.withOutput { intake.release(to: &$0, pool: pool, isCommitted: isCommitted) }
    }

    /// The record of no connection.
    static var unused: Connection { Connection(generation: 0, listener: 0, origin: 0) }
}
