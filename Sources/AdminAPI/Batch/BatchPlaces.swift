import Synchronization

/// Bounds the batches that are under way at a time, and so the memory that they hold.
final class BatchPlaces: Sendable {
    private let free: Mutex<Int>
    private let count: Int

    init(_ count: Int) {
        self.count = count
        free = Mutex(count)
    }

    /// - Throws: ``Problem`` of kind `overloaded` when all places are taken.
    func take() throws(Problem) -> Place {
        let isTaken = free.withLock { free in
            guard free > 0 else { return false }
            free -= 1
            return true
        }
        guard isTaken else {
            throw Problem(
                .overloaded, "\(count) batches are under way, which is the limit.",
                fix: "Send this one when another has ended.", headers: [.retryAfter: "5"])
        }
        return Place(self)
    }

    /// The place of one batch, until it leaves or nobody refers to it any more.
    final class Place: Sendable {
        private let places: BatchPlaces

        fileprivate init(_ places: BatchPlaces) {
            self.places = places
        }

        deinit { places.free.withLock { $0 += 1 } }
    }
}
