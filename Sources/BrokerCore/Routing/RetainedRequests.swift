import MQTTCodec
import Structures

/// New filters of all sessions that wait for their retained messages, each session's in order and
/// without duplicates: a repeated SUBSCRIBE is served by the walk that has not begun.
///
/// Each change takes constant time, however many wait. What a session leaves behind that ends is freed
/// in slices (``freeSome(_:)``).
struct RetainedRequests: ~Copyable {
    /// The requests of one job.
    struct List: BitwiseCopyable {
        /// No two jobs have the same.
        let job: UInt64
        fileprivate var order = IntrusiveList<InOrder>()

        fileprivate init(job: UInt64) { self.job = job }
    }

    struct Request: BitwiseCopyable {
        let job: UInt64
        let filter: CompactBytes
        var qos: QoS
        var inOrder = ListLinks()
    }

    fileprivate enum InOrder: ListField {
        static subscript(request: UnsafeMutablePointer<Request>) -> ListLinks {
            get { request.pointee.inOrder }
            set { request.pointee.inOrder = newValue }
        }
    }

    /// Never read; see the same in ``Shard``.
    private let addressOnly: any Sendable = ()
    private let hash: KeyedHash
    private let pool: BytePool
    private var requests = Slab<Request>()
    private var index = HashIndex()
    private var lastJob: UInt64 = 0
    /// Lists that nobody asks for any more.
    private var left = GrowableBuffer<List>()

    init(hash: KeyedHash, pool: BytePool) {
        self.hash = hash
        self.pool = pool
    }

    /// True while ``freeSome(_:)`` has work.
    var hasLeft: Bool { !left.isEmpty }

    mutating func makeList() -> List {
        lastJob += 1
        return List(job: lastJob)
    }

    mutating func add(_ filter: UnsafeRawBufferPointer, _ qos: QoS, to list: inout List) {
        if let known = find(filter, list) {
            requests[known].qos = qos
            return
        }
        list.order.append(insert(filter, qos, list), in: requests)
    }

    /// Puts the filter being served at the front again, to be served from its beginning.
    mutating func restart(_ filter: UnsafeRawBufferPointer, _ qos: QoS, in list: inout List) {
        guard find(filter, list) == nil else { return }
        list.order.prepend(insert(filter, qos, list), in: requests)
    }

    /// Removes an unsubscribed filter.
    mutating func remove(_ filter: UnsafeRawBufferPointer, from list: inout List) {
        if let known = find(filter, list) { remove(known, &list) }
    }

    mutating func next(of list: inout List) -> (filter: [UInt8], qos: QoS)? {
        guard !list.order.isEmpty else { return nil }
        let first = list.order.first
        let request = (requests[first].filter.array, requests[first].qos)
        remove(first, &list)
        return request
    }

    /// Has the requests of a list freed in slices.
    mutating func leave(_ list: List) {
        if !list.order.isEmpty { left.append(list) }
    }

    /// Frees at most so many requests that were left.
    mutating func freeSome(_ most: Int) {
        for _ in 0..<most {
            guard var list = left.popLast() else { return }
            remove(list.order.first, &list)
            leave(list)
        }
    }

    private func find(_ filter: UnsafeRawBufferPointer, _ list: List) -> UInt32? {
        index.find(hash(filter, salt: list.job)) {
            requests[$0].job == list.job && requests[$0].filter.equals(filter)
        }
    }

    private mutating func insert(
        _ filter: UnsafeRawBufferPointer, _ qos: QoS, _ list: List
    ) -> UInt32 {
        let place = requests.insert(
            Request(job: list.job, filter: CompactBytes(filter, pool: pool), qos: qos))
        index.insert(hash(filter, salt: list.job), place)
        return place
    }

    private mutating func remove(_ place: UInt32, _ list: inout List) {
        list.order.remove(place, in: requests)
        let request = requests[place]
        index.remove(request.filter.withBytes { hash($0, salt: request.job) }, place)
        request.filter.destroy(in: pool)
        requests.remove(place)
    }
}
