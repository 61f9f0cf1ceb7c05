import Structures

/// How long packets waited for the store, by commit and not by packet: a ticket belongs to what one
/// turn has submitted, and waits from the begin of that turn to the begin of the one that its
/// acknowledgement leaves in.
///
/// It also remembers, for the last second, when the messages of a turn were acknowledged, so that a
/// delivery can be measured from there without a time in each message.
package struct AcknowledgementTimes: ~Copyable {
    /// What one turn has submitted.
    package struct Submission: BitwiseCopyable {
        package var lastTicket: UInt64
        package var beganMicroseconds: UInt64
        package var arrivalStamp: UInt32
    }

    /// A turn of the last second by its arrival stamp, and the stamp of its acknowledgements.
    package struct Acknowledged: BitwiseCopyable {
        package var arrivalStamp: UInt32
        package var stamp: UInt32
    }

    /// The arrival stamps, which are milliseconds, that have a place of their own.
    private static var rememberedCount: Int { 1_024 }

    private var submissions = RingBuffer<Submission>()
    private var acknowledged = [Acknowledged](
        repeating: Acknowledged(arrivalStamp: 0, stamp: 0), count: Self.rememberedCount)
    /// The last ticket of the submission whose tickets complete; 0 without one.
    private var lastTicket: UInt64 = 0
    /// Acknowledgements of that submission that are not in the histogram.
    private var count: UInt64 = 0
    package private(set) var histogram = TimeHistogram(.fiftyMicroseconds)

    /// Notes a submission of the turn that began at these times.
    package mutating func submitted(
        through ticket: UInt64, atMicroseconds began: UInt64, arrivalStamp: UInt32
    ) {
        submissions.append(
            Submission(lastTicket: ticket, beganMicroseconds: began, arrivalStamp: arrivalStamp))
        if submissions.count == 1 { lastTicket = ticket }
    }

    /// Notes a completed ticket; they rise.
    @inline(__always)
    package mutating func completed(
        _ ticket: UInt64, isAcknowledgement: Bool, atMicroseconds now: UInt64, stamp: UInt32
    ) {
        if ticket > lastTicket { advance(to: ticket, atMicroseconds: now, stamp: stamp) }
        if isAcknowledgement { count += 1 }
    }

    /// Ends the completions of a turn.
    package mutating func endCompletions(atMicroseconds now: UInt64, stamp: UInt32) {
        guard submissions.count > 0 else { return }
        settle(submissions[0], atMicroseconds: now, stamp: stamp)
    }

    /// When what arrived then was acknowledged; the same time when that is not known any more, which
    /// is a second ago at least, or when nothing had to be stored.
    @inline(__always)
    package func acknowledgementStamp(ofArrival stamp: UInt32) -> UInt32 {
        let known = acknowledged[Int(stamp) & (Self.rememberedCount - 1)]
        return known.arrivalStamp == stamp ? known.stamp : stamp
    }

    private mutating func advance(to ticket: UInt64, atMicroseconds now: UInt64, stamp: UInt32) {
        while submissions.count > 0, submissions[0].lastTicket < ticket {
            settle(submissions[0], atMicroseconds: now, stamp: stamp)
            submissions.removeFirst()
        }
        lastTicket = submissions.count > 0 ? submissions[0].lastTicket : 0
    }

    private mutating func settle(
        _ submission: Submission, atMicroseconds now: UInt64, stamp: UInt32
    ) {
        acknowledged[Int(submission.arrivalStamp) & (Self.rememberedCount - 1)] = Acknowledged(
            arrivalStamp: submission.arrivalStamp, stamp: stamp)
        guard count > 0 else { return }
        let began = submission.beganMicroseconds
        histogram.add(microseconds: now > began ? now - began : 0, count: count)
        count = 0
    }
}
