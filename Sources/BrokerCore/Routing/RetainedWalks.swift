import MQTTCodec
import MQTTCore
import Structures

/// The retained messages that one session's new subscriptions still have to get.
package struct RetainedJob {
    /// A walk over the retained messages that match one new subscription.
    package struct Walk {
        package let filter: [UInt8]
        package var cursor: RetainedCursor
        package let qos: QoS
    }

    fileprivate var requests = RetainedRequests()
    /// The subscription that is being served.
    private var walk: Walk?
    /// True while the job waits until its session takes more.
    fileprivate var isStalled = false

    fileprivate init() {}

    /// Takes the walk out, so that it is not copied.
    package mutating func takeWalk() -> Walk? { walk.take() }

    /// Puts an unfinished walk back.
    package mutating func putBack(_ walk: Walk) { self.walk = walk }

    /// The next filter for which the caller begins a walk.
    package mutating func nextRequest() -> (filter: [UInt8], qos: QoS)? { requests.next() }

    fileprivate mutating func suspend() -> Walk? {
        let walk = walk.take()
        if let walk { requests.restart(walk.filter, walk.qos) }
        isStalled = true
        return walk
    }

    fileprivate mutating func remove(_ filter: [UInt8]) -> Walk? {
        requests.remove(filter)
        return walk?.filter == filter ? walk.take() : nil
    }
}

/// Delivers retained messages to new subscriptions in slices; each session has one job.
///
/// A job is either queued for the next slices, or stalled until its session takes more. Its walk
/// continues after the last slice.
package struct RetainedWalks {
    /// The result of one session's slice.
    package enum Slice {
        case finished
        /// The turn has visited its number of topics.
        case paused
        /// The client takes no more for now.
        case stalled
    }

    /// Topics visited per turn, so that `#` over a million topics delays nobody.
    package static let stepsPerTurn = 2_048
    /// Visits that take as long as to begin and end a walk.
    package static let stepsPerRequest = 8
    /// Access rules that take as long as a visit.
    package static let ruleStepsPerStep = 16
    /// Messages that may wait in a session before its retained messages pause.
    package static let mostWaiting: UInt32 = 256

    private var jobs: [UInt32: RetainedJob] = [:]
    /// Sessions whose jobs can go on, in the order of service.
    private var turns: [UInt32] = []

    package var count: Int { jobs.count }
    /// True when a slice can be served without any event.
    package var hasWork: Bool { !turns.isEmpty }
    package var sessions: [UInt32] { Array(jobs.keys) }

    /// Adds a new subscription of a session.
    package mutating func add(_ session: UInt32, _ filter: UnsafeRawBufferPointer, _ qos: QoS) {
        if jobs[session] == nil { turns.append(session) }
        jobs[session, default: RetainedJob()].requests.add([UInt8](filter), qos)
    }

    /// Removes the job of a session that ends. Returns the walk, which the caller ends.
    package mutating func cancel(_ session: UInt32) -> RetainedJob.Walk? {
        guard !jobs.isEmpty, var job = jobs.removeValue(forKey: session) else { return nil }
        turns.removeAll { $0 == session }
        return job.takeWalk()
    }

    /// Suspends the job of a client that goes offline. A resumed session gets the remaining
    /// messages, and some perhaps again. Returns the walk, which the caller ends.
    package mutating func suspend(_ session: UInt32) -> RetainedJob.Walk? {
        guard !jobs.isEmpty, jobs[session] != nil else { return nil }
        turns.removeAll { $0 == session }
        return jobs[session]?.suspend()
    }

    /// Removes an unsubscribed filter, since no retained message follows UNSUBACK [MQTT-3.10.4-2].
    /// Returns the walk if it served this filter; the caller ends it.
    package mutating func cancel(
        _ session: UInt32, _ filter: UnsafeRawBufferPointer
    ) -> RetainedJob.Walk? {
        jobs.isEmpty ? nil : jobs[session]?.remove([UInt8](filter))
    }

    /// True while the session's job waits until the session takes more.
    @inline(__always)
    package func isStalled(_ session: UInt32) -> Bool {
        !jobs.isEmpty && jobs[session]?.isStalled == true
    }

    /// Resumes a stalled job, because the session takes more.
    package mutating func resume(_ session: UInt32) {
        jobs[session]?.isStalled = false
        turns.append(session)
    }

    /// The number of sessions to serve in this turn; each is found by its place in the order.
    /// Sessions that this turn does not reach come first in the next.
    package var turnCount: Int { turns.count }
    package func session(inTurn place: Int) -> UInt32 { turns[place] }

    /// Takes a session's job for one slice; ``endSlice(_:_:_:)`` puts it back.
    package mutating func takeJob(of session: UInt32) -> RetainedJob {
        guard let job = jobs.removeValue(forKey: session) else {
            preconditionFailure("session \(session) waits for retained messages without a job")
        }
        return job
    }

    package mutating func endSlice(_ session: UInt32, _ job: consuming RetainedJob, _ slice: Slice)
    {
        switch slice {
        case .finished: return
        case .paused: turns.append(session)
        case .stalled: job.isStalled = true
        }
        jobs[session] = job
    }

    /// Removes the sessions that this turn has served from the order.
    package mutating func endTurn(served: Int) { turns.removeFirst(served) }
}
