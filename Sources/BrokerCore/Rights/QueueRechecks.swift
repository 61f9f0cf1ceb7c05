import Structures

/// Connections whose queues hold messages from before the present rules, more than are looked at at
/// once; the next turns go on with them.
package struct QueueRechecks: ~Copyable {
    private var order = RingBuffer<Handle>()
    private var members: Set<Handle> = []

    package init() {}

    package var isEmpty: Bool { order.count == 0 }
    package var count: Int { order.count }

    package mutating func add(_ handle: Handle) {
        if members.insert(handle).inserted { order.append(handle) }
    }

    /// Takes the one that has waited longest.
    package mutating func popFirst() -> Handle? {
        let handle = order.popFirst()
        if let handle { members.remove(handle) }
        return handle
    }
}
