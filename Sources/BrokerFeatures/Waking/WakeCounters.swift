import BrokerAPI
import BrokerCore

/// What became of wakes since the start.
struct WakeCounters: Sendable {
    /// By the answer.
    var results = Counts<WakeResult>()
    /// Not owed any more before an attempt: the client came, its messages expired or were dropped.
    var cancelled: UInt64 = 0
    var expired: UInt64 = 0
    /// Messages that asked for a wake, and of these those that an earlier one of the same wake made
    /// unnecessary.
    var asked: UInt64 = 0
    var merged: UInt64 = 0
    /// Messages that a rule dropped in quiet hours.
    var dropped: UInt64 = 0
    /// Wakes that quiet hours or a cap held back.
    var held: UInt64 = 0
    /// Wakes without an answer of their sender.
    var unanswered: UInt64 = 0
    /// Registrations that could not be read, and those for which there was no room.
    var malformed: UInt64 = 0
    var refused: UInt64 = 0
    /// Registrations and goodbyes that concern another user's device.
    var ofOthers: UInt64 = 0

    // MARK: Figures

    var refusals: [BrokerFigures.Count] {
        [
            BrokerFigures.Count("malformed", malformed), BrokerFigures.Count("no_room", refused),
            BrokerFigures.Count("other_user", ofOthers),
        ]
    }

    var messages: [BrokerFigures.Count] {
        [
            BrokerFigures.Count("dropped", dropped), BrokerFigures.Count("merged", merged),
            BrokerFigures.Count("new", asked - merged),
        ]
    }

    var ends: [BrokerFigures.Count] {
        results.figures + [
            BrokerFigures.Count("cancelled", cancelled), BrokerFigures.Count("expired", expired),
            BrokerFigures.Count("held", held),
            BrokerFigures.Count("unanswered", unanswered),
        ]
    }
}
