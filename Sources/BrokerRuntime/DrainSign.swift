import Synchronization

/// Tells other threads whether a loop drains, without asking the loop.
package final class DrainSign: Sendable {
    private let value = Atomic(false)

    package init() {}

    package var isSet: Bool { value.load(ordering: .relaxed) }

    func set(_ isSet: Bool) { value.store(isSet, ordering: .relaxed) }
}
