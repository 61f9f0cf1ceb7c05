import Structures

/// Connections whose queues hold messages from before the present rules, more than are looked at at
/// once; the next turns go on with them.
package struct QueueRechecks {
    private var order: [Handle] = []
    private var members: Set<Handle> = []

    package var isEmpty: Bool { order.isEmpty }

    package mutating func add(_ handle: Handle) {
        if members.insert(handle).inserted { order.append(handle) }
    }

    /// Takes all, in the order in which they came.
    package mutating func take() -> [Handle] {
        members.removeAll()
        return takeAll(&order)
    }
}
