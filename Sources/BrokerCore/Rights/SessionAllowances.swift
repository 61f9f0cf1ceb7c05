import Authorization
import Structures

/// The topics that the logins of sessions allow. A session names its entry, which it has until it is
/// removed or its client comes with another login.
///
/// A million sessions share few instances, since those with equal lists are the same.
package struct SessionAllowances {
    private var entries: [TopicAllowance?] = []
    private var free: [UInt32] = []
    private var count = 0

    /// True without an entry. Asked for each PUBLISH.
    @inline(__always)
    package var isEmpty: Bool { count == 0 }

    /// The entry at an index; `nil` at ``noIndex``.
    @inline(__always)
    package subscript(index: UInt32) -> TopicAllowance? {
        index == noIndex ? nil : entries[Int(index)]
    }

    package mutating func add(_ allowance: TopicAllowance) -> UInt32 {
        count += 1
        if let index = free.popLast() {
            entries[Int(index)] = allowance
            return index
        }
        entries.append(allowance)
        return UInt32(entries.count - 1)
    }

    package mutating func remove(_ index: UInt32) {
        precondition(entries[Int(index)] != nil, "allowance \(index) was removed twice")
        entries[Int(index)] = nil
        count -= 1
        free.append(index)
    }
}
