import BrokerAPI

/// What became of wakes since the start.
struct WakeCounters: Sendable {
    /// Handed to a sender, each attempt.
    var attempts: UInt64 = 0
    /// By the answer.
    var results = Counts<WakeResult>()
    /// Not owed any more before an attempt: the client came, its messages expired or were dropped.
    var cancelled: UInt64 = 0
    var expired: UInt64 = 0
    /// Messages that asked for a wake, and of these those that an earlier one of the same wake made
    /// unnecessary.
    var asked: UInt64 = 0
    var merged: UInt64 = 0
    /// Wakes without an answer of their sender.
    var unanswered: UInt64 = 0
    /// Registrations that could not be read, and those for which there was no room.
    var malformed: UInt64 = 0
    var refused: UInt64 = 0
}
