import MQTTCore
import Structures

/// One network connection as its shard sees it; at the index that the reactor gave it.
struct Connection: BitwiseCopyable {
    /// 0 while the record is unused.
    var generation: UInt32 = 0
    /// The session, once CONNECT has been accepted.
    var session: UInt32 = noIndex
    /// The CONNECT deadline first, then the keep alive.
    var timer: UInt32 = noIndex
    var machine = ConnectionMachine()
    var listener: UInt8 = 0
    /// CONNACK has left with code 0.
    var isOpen = false
    var isDirty = false
    /// We do not read: too much of what it sent waits.
    var isPaused = false
    /// Paused until the store takes more again.
    var awaitsStore = false
    /// It ends with this turn; nothing that it sends counts any more.
    var isDoomed = false
    /// QoS 1 and 2 wait until the output has drained.
    var isThrottled = false
    /// 0 turns the check off.
    var keepAliveMs: UInt32 = 0
    /// The last complete packet.
    var lastPacket = MonotonicTime(milliseconds: 0)
    var output = OutputQueue()
    /// Redelivered at the start and perhaps not sent yet: no sign of a peer that does not read. At most
    /// 2^32 - 1.
    var resentBytes: UInt32 = 0
    /// A key of the peer's address; 0 while that is not known.
    var origin: UInt32 = 0
    var acknowledgements = AcknowledgementQueue()
    var will: Message?
    /// What it may publish to without another question.
    var permit: PublishPermit?
    /// The CONNECT packet while its password is checked.
    var pendingConnect: SharedBytes?
}
