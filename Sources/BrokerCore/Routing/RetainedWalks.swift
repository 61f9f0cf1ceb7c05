import MQTTCodec
import MQTTCore
import Structures

/// The retained messages that one session's new subscriptions are owed.
struct RetainedJob {
    /// A walk over the retained messages that match one new subscription.
    struct Walk {
        let filter: [UInt8]
        var cursor: RetainedCursor
        let qos: QoS
    }

    fileprivate var requests = RetainedRequests()
    /// The subscription that is being served.
    private var walk: Walk?
    /// The job waits until its session takes more.
    fileprivate var isStalled = false

    fileprivate init() {}

    /// Takes the walk out, so that it has one owner and is not copied.
    mutating func takeWalk() -> Walk? { walk.take() }

    /// Gives a walk back that goes on.
    mutating func putBack(_ walk: Walk) { self.walk = walk }

    /// The next filter for which the caller begins a walk.
    mutating func nextRequest() -> (filter: [UInt8], qos: QoS)? { requests.next() }

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

/// Retained messages on their way to new subscriptions, in slices: one job for each session that subscribed.
///
/// A job is in turn, so that the next slices serve it, or stalled, until its session takes more. Its walk
/// goes on where the last slice ended.
struct RetainedWalks {
    /// How far one session's slice came.
    enum Slice {
        case finished
        /// The turn's steps are used up.
        case paused
        /// The client takes no more at present.
        case stalled
    }

    /// Topics that one turn may visit, so that `#` over a million stalls nobody.
    static let stepsPerTurn = 2_048
    /// Messages that may wait in a session before its retained messages pause.
    static let mostWaiting: UInt32 = 256

    private var jobs: [UInt32: RetainedJob] = [:]
    /// Sessions whose jobs can go on, in turn.
    private var turns: [UInt32] = []

    var count: Int { jobs.count }
    /// Whether a slice can be served without any event.
    var hasWork: Bool { !turns.isEmpty }
    var sessions: [UInt32] { Array(jobs.keys) }

    /// A session has subscribed.
    mutating func add(_ session: UInt32, _ filter: UnsafeRawBufferPointer, _ qos: QoS) {
        if jobs[session] == nil { turns.append(session) }
        jobs[session, default: RetainedJob()].requests.add([UInt8](filter), qos)
    }

    /// The session ends, and with it its job. Hands out the walk, which the caller ends.
    mutating func cancel(_ session: UInt32) -> RetainedJob.Walk? {
        guard !jobs.isEmpty, var job = jobs.removeValue(forKey: session) else { return nil }
        turns.removeAll { $0 == session }
        return job.takeWalk()
    }

    /// The client goes offline. When it comes back to its session, it still gets the messages that it asked
    /// for, and some of them perhaps again. Hands out the walk, which the caller ends.
    mutating func suspend(_ session: UInt32) -> RetainedJob.Walk? {
        guard !jobs.isEmpty, jobs[session] != nil else { return nil }
        turns.removeAll { $0 == session }
        return jobs[session]?.suspend()
    }

    /// No retained message follows an UNSUBSCRIBE [MQTT-3.10.4-2]. Hands out the walk if it served this
    /// filter; the caller ends it.
    mutating func cancel(
        _ session: UInt32, _ filter: UnsafeRawBufferPointer
    ) -> RetainedJob.Walk? {
        jobs.isEmpty ? nil : jobs[session]?.remove([UInt8](filter))
    }

    /// Whether the session's job waits until the session takes more.
    @inline(__always)
    func isStalled(_ session: UInt32) -> Bool {
        !jobs.isEmpty && jobs[session]?.isStalled == true
    }

    /// The session takes more: its stalled job goes on.
    mutating func resume(_ session: UInt32) {
        jobs[session]?.isStalled = false
        turns.append(session)
    }

    /// The number of sessions to serve in this turn, and each of them by its place in turn. Sessions that
    /// are not served go before those that were.
    var turnCount: Int { turns.count }
    func session(inTurn place: Int) -> UInt32 { turns[place] }

    /// Takes a session's job out for one slice; ``endSlice(_:_:_:)`` gives it back.
    mutating func takeJob(of session: UInt32) -> RetainedJob {
        guard let job = jobs.removeValue(forKey: session) else {
            preconditionFailure("session \(session) waits for retained messages without a job")
        }
        return job
    }

    mutating func endSlice(_ session: UInt32, _ job: consuming RetainedJob, _ slice: Slice) {
        switch slice {
        case .finished: return
        case .paused: turns.append(session)
        case .stalled: job.isStalled = true
        }
        jobs[session] = job
    }

    /// So many of the sessions in turn were served.
    mutating func endTurn(served: Int) { turns.removeFirst(served) }
}
