import BrokerAPI
import MQTTCodec
import MQTTCore
import Store
import Structures

/// A queue position as features know it.
package struct FollowedPosition: BitwiseCopyable {
    /// The number of the session, or that of a batch of ``HandOvers``.
    package let number: UInt64
    package let position: UInt64

    package init(number: UInt64, position: UInt64) {
        self.number = number
        self.position = position
    }
}

/// The features that follow a shard: it tells them what has happened, and knows none of them by name.
///
/// A hook is called in the middle of a flow, and what it records lies in the same group of records as
/// that of which it is told: a receipt's end with the end of the queue position, for example. So a
/// hook notes and records; it closes no connection, routes no message and ends no group. Work that
/// does such things is done in ``run(_:)`` and ``settle(_:)``, at their places in the turn.
///
/// The hooks of queue positions are called only for messages and sessions that a feature has marked
/// (``RoutedMessage/isFollowed``, ``Session/follows``, ``Session/isWatched``), so that all others
/// cost a test of one byte.
package protocol Followers: AnyObject {
    // MARK: Queue positions

    /// A followed message gets this position in a session's queue.
    func positionBegan(
        _ shard: inout Shard, _ message: RoutedMessage, _ session: UInt32, _ position: UInt64)
    /// A followed message ends for a session without a position in its queue.
    func endedAtOnce(
        _ shard: inout Shard, _ message: RoutedMessage, _ session: UInt32, _ end: QueueEnd)
    /// A position of a followed session has ended. One of QoS 2 ends with PUBREC, and once more with
    /// PUBCOMP.
    func positionEnded(
        _ shard: inout Shard, _ session: UInt32, _ position: UInt64, _ end: QueueEnd)
    /// A position of a followed session has another number, because holes before it are closed;
    /// `number` is the session's.
    func positionMoved(_ number: UInt64, from old: UInt64, to new: UInt64)
    /// The follower of a message that another member of its group is to get; ``noIndex`` without one.
    /// It is good for this flow, in which the message is routed as one that is passed on
    /// (``RoutedMessage/isPassedOn``), or ``endedAtNobody(_:_:_:)`` is told.
    func follower(of position: FollowedPosition) -> UInt32
    /// The message of a followed position leaves its queue, to be given to another member of its group
    /// in a later turn. Until then it is followed under another name.
    func positionLeft(_ position: FollowedPosition, as name: FollowedPosition)
    /// No member of the group takes the followed message.
    func endedAtNobody(_ shard: inout Shard, _ follower: UInt32, _ end: QueueEnd)
    /// A message has been queued for a watched session.
    func queued(
        _ shard: inout Shard, _ message: inout RoutedMessage, _ session: UInt32,
        _ position: UInt64)
    /// A message of a watched session has expired, and left its queue.
    func expired(_ shard: inout Shard, _ session: UInt32, _ position: UInt64)

    // MARK: Clients and sessions

    /// A session has got a connection.
    func attached(_ shard: inout Shard, _ session: UInt32)
    /// A session with an accepted CONNECT is about to lose its connection.
    func connectionEnded(
        _ shard: inout Shard, _ connection: Connection, _ reason: CloseReason)
    /// A persistent session has lost its connection.
    func detached(_ shard: inout Shard, _ session: UInt32)
    /// A session is about to be removed; its queue is still there.
    func sessionEnds(_ shard: inout Shard, _ session: UInt32)
    /// A followed session is removed. The record of its end is in the group that is being written. With
    /// `leavesQueue` other members of its groups get messages of its stored queue later, and
    /// ``queueEnded(_:)`` follows.
    func sessionEnded(_ shard: inout Shard, _ session: UInt32, leavesQueue: Bool)
    /// The stored queue of an ended session has been handed over; `number` is the session's.
    func queueEnded(_ number: UInt64)

    // MARK: Messages of clients

    /// True for a topic below `$` whose messages a feature takes.
    func takes(_ topic: UnsafeRawBufferPointer) -> Bool
    /// Takes what a client published to such a topic, which goes to nobody. What is recorded is
    /// committed before the client is acknowledged.
    func take(_ shard: inout Shard, _ payload: UnsafeRawBufferPointer, from session: UInt32)
    /// Topics that begin so are read on their way to subscribers; empty for none, else more than
    /// eight bytes.
    var readPrefix: StaticString { get }
    /// Reads an accepted message whose topic may begin with ``readPrefix``.
    func read(
        _ shard: inout Shard, _ topic: UnsafeRawBufferPointer,
        _ payload: UnsafeRawBufferPointer, from session: UInt32)

    // MARK: The turn

    /// When the hooks of the turn have work.
    var agenda: FollowerAgenda { get }
    /// True when ``publish(_:)`` has work, for which other connections are held to their shares.
    func isPublishing(_ shard: borrowing Shard) -> Bool
    /// Publishes what is due, for the share of the turn.
    func publish(_ shard: inout Shard)
    /// Does what is due at this time, within bounds for each turn.
    func run(_ shard: inout Shard)
    /// Completions have been taken: answers what waited for them.
    func settle(_ shard: inout Shard)
    /// The time of the next turn that the features need; `nil` for none, and that of now when work is
    /// left. It is asked for when the ``agenda`` is stirred, or may publish; the agenda's other
    /// entries are written with it.
    func nextDeadline(_ shard: borrowing Shard) -> MonotonicTime?
    /// A commit has completed whose action, ``CommitLog/Action/follower(_:)``, has this number.
    func committed(_ number: UInt64)
    /// A part of a queue has been read for the features, under the tag of their own.
    func take(_ shard: inout Shard, _ slice: QueueSlice, tag: UInt64)
    /// True while a match in slices that ``MatchPublisher/features`` made has to go on.
    var awaitsMatch: Bool { get }
    /// As ``awaitsMatch``, for ``MatchPublisher/question``.
    var awaitsReceivers: Bool { get }

    // MARK: The whole

    /// All stored state has been visited.
    func finishRestoring(_ shard: inout Shard)
    /// Adds the figures of the features.
    func add(to figures: inout BrokerFigures, _ shard: borrowing Shard)
}
