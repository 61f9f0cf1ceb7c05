import MQTTCore
import Structures

/// The shard's record of one network connection, at the index that the reactor chose.
///
/// Its parts keep their own state. They are ordered to leave few gaps, since a broker has many idle
/// connections, and fill 128 bytes: with a power of two, an address is a shift.
package struct Connection: BitwiseCopyable {
    /// 0 while the record is unused.
    package let generation: UInt32
    /// The session; `noIndex` until CONNECT is accepted.
    package var session: UInt32 = noIndex
    package var machine = ConnectionMachine()
    /// The listener that accepted it.
    package let listener: UInt8
    /// Seconds of silence before the last PINGREQ; 0 before the first.
    package private(set) var pingSilence: UInt16 = 0
    /// The deadline of CONNECT first, then the keep alive.
    package var timer: UInt32 = noIndex
    package var keepAlive = KeepAlive()
    /// The key of the peer's address; 0 while it is unknown.
    package var origin: UInt32
    package var intake = Intake()
    package var outlet = Outlet()
    package var will: Message?
    /// The topic to which the access rules last allowed the client to publish.
    package var permit: PublishPermit?

    package init(generation: UInt32, listener: UInt8, origin: UInt32) {
        self.generation = generation
        self.listener = listener
        self.origin = origin
    }

    /// Notes the silence that a PINGREQ ends.
    package mutating func notePing(at now: MonotonicTime) {
        pingSilence = UInt16(clamping: now.milliseconds(since: keepAlive.lastPacket) / 1_000)
    }

    /// Moves acknowledgements whose commits have completed to the output; counts them by kind.
    package mutating func releaseAcknowledgements(
        pool: BytePool, isCommitted: (UInt64) -> Bool
    ) -> (count: Int, types: AcknowledgementQueue.Types) {
        outlet.withOutput { intake.release(to: &$0, pool: pool, isCommitted: isCommitted) }
    }

    /// The content of an unused record.
    package static var unused: Connection { Connection(generation: 0, listener: 0, origin: 0) }
}
