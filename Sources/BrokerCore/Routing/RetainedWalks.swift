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

    fileprivate var requests: RetainedRequests.List
    /// The subscription that is being served.
    private var walk: Walk?
    /// True while the job waits until its session takes more.
    fileprivate var isStalled = false
    /// The number of its place in the order of service; an earlier place of it is passed over.
    fileprivate var place: UInt64 = 0

    fileprivate init(_ requests: RetainedRequests.List) { self.requests = requests }

    /// Takes the walk out, so that it is not copied.
    package mutating func takeWalk() -> Walk? { walk.take() }

    /// Puts an unfinished walk back.
    package mutating func putBack(_ walk: Walk) { self.walk = walk }

    /// Takes the walk out if it serves this filter.
    fileprivate mutating func takeWalk(of filter: UnsafeRawBufferPointer) -> Walk? {
        guard let walk, walk.filter.count == filter.count, filter.elementsEqual(walk.filter) else {
            return nil
        }
        return takeWalk()
    }
}

/// Delivers retained messages to new subscriptions in slices; each session has one job.
///
/// A job is either queued for the next slices, or stalled until its session takes more. Its walk
/// continues after the last slice.
package struct RetainedWalks: ~Copyable {
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

    /// Stalled jobs that are looked at, and requests that are freed, in a turn.
    private static let changesPerTurn = 1_024

    private var requests: RetainedRequests
    private var jobs: [UInt32: RetainedJob] = [:]
    /// Sessions whose jobs can go on, in the order of service, with the numbers of their places; also
    /// some whose job has ended or stalled since.
    private var turns: [(session: UInt32, place: UInt64)] = []
    private var lastPlace: UInt64 = 0
    /// Sessions whose jobs may go on, because the store accepts messages again.
    private var mayGoOn: [UInt32] = []

    package init(hash: KeyedHash, pool: BytePool) {
        requests = RetainedRequests(hash: hash, pool: pool)
    }

    package var count: Int { jobs.count }
    /// True when a slice can be served without any event.
    package var hasWork: Bool { !turns.isEmpty || !mayGoOn.isEmpty || requests.hasLeft }

    /// Adds a new subscription of a session.
    package mutating func add(_ session: UInt32, _ filter: UnsafeRawBufferPointer, _ qos: QoS) {
        let known = jobs.removeValue(forKey: session)
        var job = known ?? RetainedJob(requests.makeList())
        if known == nil { queue(session, &job) }
        requests.add(filter, qos, to: &job.requests)
        jobs[session] = job
    }

    private mutating func queue(_ session: UInt32, _ job: inout RetainedJob) {
        lastPlace += 1
        job.place = lastPlace
        turns.append((session, lastPlace))
    }

    /// Removes the job of a session that ends. Returns the walk, which the caller ends.
    package mutating func cancel(_ session: UInt32) -> RetainedJob.Walk? {
        guard !jobs.isEmpty, var job = jobs.removeValue(forKey: session) else { return nil }
        requests.leave(job.requests)
        return job.takeWalk()
    }

    /// Suspends the job of a client that goes offline. A resumed session gets the remaining
    /// messages, and some perhaps again. Returns the walk, which the caller ends.
    package mutating func suspend(_ session: UInt32) -> RetainedJob.Walk? {
        guard !jobs.isEmpty, var job = jobs.removeValue(forKey: session) else { return nil }
        let walk = job.takeWalk()
        if let walk {
            walk.filter.withUnsafeBytes { requests.restart($0, walk.qos, in: &job.requests) }
        }
        job.isStalled = true
        jobs[session] = job
        return walk
    }

    /// Removes an unsubscribed filter, since no retained message follows UNSUBACK [MQTT-3.10.4-2].
    /// Returns the walk if it served this filter; the caller ends it.
    package mutating func cancel(
        _ session: UInt32, _ filter: UnsafeRawBufferPointer
    ) -> RetainedJob.Walk? {
        guard !jobs.isEmpty, var job = jobs.removeValue(forKey: session) else { return nil }
        requests.remove(filter, from: &job.requests)
        let walk = job.takeWalk(of: filter)
        jobs[session] = job
        return walk
    }

    /// The next filter of a job for which the caller begins a walk.
    package mutating func nextRequest(
        of job: inout RetainedJob
    ) -> (filter: [UInt8], qos: QoS)? { requests.next(of: &job.requests) }

    /// True while the session's job waits until the session takes more.
    @inline(__always)
    package func isStalled(_ session: UInt32) -> Bool {
        !jobs.isEmpty && jobs[session]?.isStalled == true
    }

    /// Resumes a stalled job, because the session takes more.
    package mutating func resume(_ session: UInt32) {
        guard var job = jobs.removeValue(forKey: session) else { return }
        job.isStalled = false
        queue(session, &job)
        jobs[session] = job
    }

    /// The number of sessions to serve in this turn; each is found by its place in the order.
    /// Sessions that this turn does not reach come first in the next.
    package var turnCount: Int { turns.count }
    package func session(inTurn place: Int) -> UInt32 { turns[place].session }

    /// Takes the job at a place of the order for one slice; ``endSlice(_:_:_:)`` puts it back. `nil` when
    /// it has ended or stalled since, or has a later place.
    package mutating func takeJob(inTurn place: Int) -> RetainedJob? {
        let (session, number) = turns[place]
        guard let job = jobs[session], !job.isStalled, job.place == number else { return nil }
        return jobs.removeValue(forKey: session)
    }

    /// Has ``beginTurn()`` return the sessions with jobs.
    package mutating func letGoOn() { mayGoOn = Array(jobs.keys) }

    /// Begins a turn: frees some of what ended jobs have left, and returns some of the sessions whose
    /// jobs may go on, for the caller to resume.
    package mutating func beginTurn() -> [UInt32] {
        requests.freeSome(Self.changesPerTurn)
        let some = Array(mayGoOn.suffix(Self.changesPerTurn))
        mayGoOn.removeLast(some.count)
        return some
    }

    package mutating func endSlice(_ session: UInt32, _ job: consuming RetainedJob, _ slice: Slice)
    {
        switch slice {
        case .finished: return
        case .paused: queue(session, &job)
        case .stalled: job.isStalled = true
        }
        jobs[session] = job
    }

    /// Removes the sessions that this turn has served from the order.
    package mutating func endTurn(served: Int) { turns.removeFirst(served) }
}
