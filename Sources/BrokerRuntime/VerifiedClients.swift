import Structures
import TLS

/// The certificates of connected clients, for later revocation lists.
///
/// A side table, since only clients with certificates need it: about 100 bytes each, and 8 more for
/// every intermediate authority.
struct VerifiedClients: ~Copyable {
    private struct Entry {
        var generation: UInt32
        var listener: UInt32
        var client: VerifiedClient
    }

    /// By connection index.
    private var entries: [UInt32: Entry] = [:]

    mutating func add(_ connection: Handle, _ client: VerifiedClient, listener: Int) {
        entries[connection.index] = Entry(
            generation: connection.generation, listener: UInt32(listener), client: client)
    }

    /// Forgets a closing connection, with or without a certificate.
    mutating func remove(_ connection: Handle) {
        guard !entries.isEmpty, entries[connection.index]?.generation == connection.generation
        else { return }
        entries[connection.index] = nil
    }

    /// Connections whose certificates the new context of their listener rejects.
    func refused(by contexts: [TLSContext?]) -> [Handle] {
        entries.compactMap { index, entry in
            guard let context = contexts[Int(entry.listener)], !context.admits(entry.client) else {
                return nil
            }
            return Handle(index: index, generation: entry.generation)
        }
    }
}
