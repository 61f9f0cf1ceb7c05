import Structures
import Synchronization

/// Connections whose logins may be asked about elsewhere, so that nobody is asked about one that has
/// gone while it waited.
///
/// A side table, since only a broker that asks a service needs it: some 100 bytes for each login that
/// is being checked.
struct AskedLogins {
    private final class Standing: Sendable {
        let isGone = Atomic<Bool>(false)
    }

    private let isUsed: Bool
    /// By connection index.
    private var entries: [UInt32: (generation: UInt32, standing: Standing)] = [:]

    init(isUsed: Bool) { self.isUsed = isUsed }

    /// Keeps a connection until its login is decided; tells any thread whether it has gone.
    mutating func begin(_ handle: Handle) -> (@Sendable () -> Bool)? {
        guard isUsed else { return nil }
        let standing = Standing()
        entries[handle.index] = (handle.generation, standing)
        return { standing.isGone.load(ordering: .relaxed) }
    }

    /// Its login is decided.
    mutating func end(_ handle: Handle) {
        guard !entries.isEmpty, entries[handle.index]?.generation == handle.generation else {
            return
        }
        entries[handle.index] = nil
    }

    /// The connection closes, whether its login is decided or not.
    mutating func leave(_ handle: Handle) {
        guard !entries.isEmpty, let entry = entries[handle.index],
            entry.generation == handle.generation
        else { return }
        entry.standing.isGone.store(true, ordering: .relaxed)
        entries[handle.index] = nil
    }
}
