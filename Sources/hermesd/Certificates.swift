import ConfiguredFiles
import OperatorConfiguration
import Synchronization
import SystemFiles
import TLS

/// The certificates of all listeners, read at the start, after a change of their files and at
/// SIGHUP. If the new files cannot be used, the old certificates stay.
final class Certificates: Sendable {
    /// Contexts for handshakes, made from one state of the files.
    struct Read: Sendable {
        /// By listener; `nil` for one that serves plain TCP.
        let contexts: [TLSContext?]
        fileprivate let stamps: [FileStamp?]
    }

    private struct State {
        var contexts: [TLSContext?]
        var files: WatchedFiles<[FileStamp?]>

        init(_ read: Read) {
            contexts = read.contexts
            files = WatchedFiles(inUse: read.stamps)
        }
    }

    /// By listener; `nil` for one that serves plain TCP.
    private let settings: [TLSSettings?]
    private let files: [String]
    private let tickets = TicketKeys()
    private let state: Mutex<State>

    /// Reads the files at the start; any problem is an error.
    init(_ configuration: HermesConfiguration) throws(TLSProblems) {
        settings = configuration.listenersTLS
        files = settings.flatMap { $0?.files ?? [] }
        state = Mutex(State(try Self.read(settings, files, tickets)))
    }

    /// True when a listener speaks TLS.
    var isUsed: Bool { settings.contains { $0 != nil } }

    /// Reads all files; the error has all problems together.
    func read() throws(TLSProblems) -> Read { try Self.read(settings, files, tickets) }

    /// Notes that these certificates are in use.
    func use(_ read: Read) { state.withLock { $0 = State(read) } }

    /// True when the files differ from those in use.
    func isChanged(by read: Read) -> Bool {
        state.withLock { $0.files.isChanged(by: read.stamps) }
    }

    /// The current stamps of all files.
    var stamps: [FileStamp?] { files.map { FileStamp(of: $0) } }

    /// True when files with these stamps should be read now.
    func areDue(_ stamps: [FileStamp?]) -> Bool {
        state.withLock { $0.files.isDue(stamps, at: .now) }
    }

    /// Notes that files with these stamps cannot be used; true if this is new.
    func refuse(_ stamps: [FileStamp?], _ problems: TLSProblems) -> Bool {
        state.withLock { $0.files.refuse(stamps, "\(problems)", at: .now) }
    }

    /// The contexts in use, by listener.
    var contexts: [TLSContext?] { state.withLock { $0.contexts } }

    private static func read(
        _ settings: [TLSSettings?], _ files: [String], _ tickets: TicketKeys
    ) throws(TLSProblems) -> Read {
        // Taken before reading, so that a change during it is seen as a change.
        let stamps = files.map { FileStamp(of: $0) }
        var contexts: [TLSContext?] = []
        var problems: [TLSProblem] = []
        for settings in settings {
            guard let settings else {
                contexts.append(nil)
                continue
            }
            do throws(TLSProblems) {
                contexts.append(try TLSContext(settings, tickets: tickets))
            } catch {
                problems += error.problems
            }
        }
        guard problems.isEmpty else { throw TLSProblems(problems: problems) }
        return Read(contexts: contexts, stamps: stamps)
    }
}
