import BanFiles
import BrokerAPI
import Credentials
import Synchronization

/// The bans of a broker: their file in the data directory, and the table that was last made of it.
///
/// The file is the truth. Every change reads it, leaves out what has expired, and writes it whole.
package final class BanBook: Sendable {
    /// The longest wait for another program's change of the file.
    private static let patience = Duration.seconds(2)

    private let path: String
    /// Held during a change, which waits for the disk; counts the tables.
    private let generation = Mutex<UInt64>(1)
    private let current: Mutex<BanTable>

    /// Reads the file at the start, if there is one.
    ///
    /// - Throws: ``BanFileError`` for a file that cannot be used. A broker does not start with one,
    ///   since it would let in those who are shut out.
    package init(dataDirectory: String) throws(BanFileError) {
        path = "\(dataDirectory)/\(BanFile.name)"
        var file = BanFile()
        do throws(BanFileError) {
            file = try BanFile.load(path: path)
        } catch .missing {
            // Nobody was ever banned.
        }
        current = Mutex(BanTable(file.entries, generation: 1))
    }

    /// The whole file, checked, for a backup; `nil` when nobody was ever banned. Waits for the disk.
    func contents() throws(BanFileError) -> [UInt8]? {
        do throws(BanFileError) {
            return try BanFile.load(path: path).contents
        } catch .missing {
            return nil
        }
    }

    package var table: BanTable { current.withLock { $0 } }

    /// Bans a target from now on; an earlier ban of it keeps its identifier, and gets the new time,
    /// reason and author. Waits for the disk.
    ///
    /// - Parameters:
    ///   - target: Whom to shut out.
    ///   - seconds: For how long; `nil` until it is lifted.
    ///   - reason: Why, for other operators.
    ///   - author: The caller's token.
    ///   - now: UNIX time in milliseconds.
    /// - Returns: What became of it, and the new table.
    /// - Throws: ``BanFileError``; nothing has changed then.
    func add(
        _ target: Ban.Target, seconds: Int64?, reason: String, author: String, nowMs now: Int64
    ) throws(BanFileError) -> (addition: BanAddition, table: BanTable) {
        let created = now / 1_000
        let (addition, table) = try change(nowMs: now) { file in
            file.add(
                Ban(
                    id: Self.freeID(in: file), target: target, created: created,
                    expires: seconds.map { created + $0 }, reason: reason, author: author))
        }
        return (addition, table)
    }

    /// Lifts a ban. Waits for the disk.
    ///
    /// - Returns: The ban, or `nil` without one that has not expired, and the new table.
    /// - Throws: ``BanFileError``; nothing has changed then.
    func lift(
        _ id: Ban.ID, nowMs now: Int64
    ) throws(BanFileError) -> (lifted: Ban?, table: BanTable) {
        let (lifted, table) = try change(nowMs: now) { file in
            let ban = file.entries.first { $0.id == id }
            if ban != nil { file.removeAll { $0.id == id } }
            return ban
        }
        return (lifted, table)
    }

    private func change<Result: Sendable>(
        nowMs now: Int64, _ change: (inout BanFile) -> Result
    ) throws(BanFileError) -> (Result, BanTable) {
        try generation.withLock { (generation) throws(BanFileError) in
            let (result, bans) = try BanFile.update(
                path: path, creating: true, lockTimeout: Self.patience
            ) { file in
                file.removeAll { $0.isExpired(atMs: now) }
                let result = change(&file)
                return (result, file.entries)
            }
            generation += 1
            let hits = current.withLock { $0.hits }
            let table = BanTable(bans, generation: generation, hits: hits)
            current.withLock { $0 = table }
            hits.keep(bans)
            return (result, table)
        }
    }

    /// A random identifier, so that one that was lifted is not soon another ban's.
    private static func freeID(in file: BanFile) -> Ban.ID {
        let taken = Set(file.entries.map(\.id))
        while true {
            let id = Ban.ID(UInt32.random(in: .min ... .max))
            if !taken.contains(id) { return id }
        }
    }
}
