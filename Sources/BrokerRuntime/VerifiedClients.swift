import Structures
import TLS

/// What the clients of open connections were verified against, so that a revocation list that is read
/// later ends them.
///
/// A side table, because only those who showed a certificate are in it: some 100 bytes for each, and 8
/// more for every authority between.
struct VerifiedClients: ~Copyable {
    private struct Entry {
        var generation: UInt32
        var listener: UInt32
        var client: VerifiedClient
    }

    /// By index of the connection.
    private var entries: [UInt32: Entry] = [:]

    mutating func add(_ connection: Handle, _ client: VerifiedClient, listener: Int) {
        entries[connection.index] = Entry(
            generation: connection.generation, listener: UInt32(listener), client: client)
    }

    /// The connection closes; also for one whose client showed nothing.
    mutating func remove(_ connection: Handle) {
        guard !entries.isEmpty, entries[connection.index]?.generation == connection.generation
        else { return }
        entries[connection.index] = nil
    }

    /// Those whom the context of their listener lets in no more.
    func refused(by contexts: [TLSContext?]) -> [Handle] {
        entries.compactMap { index, entry in
            guard let context = contexts[Int(entry.listener)], !context.admits(entry.client) else {
                return nil
            }
            return Handle(index: index, generation: entry.generation)
        }
    }
}
