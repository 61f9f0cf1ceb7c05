import ConfiguredFiles
import Credentials
import OperatorConfiguration
import Synchronization
import TLS

/// The certificates of all listeners: read at the start, and again when their files change or SIGHUP
/// asks for it. Files that turned bad leave those that are in use.
final class Certificates: Sendable {
    /// One state of all files, good to make handshakes with.
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

    /// Reads the files, which must be good at the start.
    init(_ configuration: HermesConfiguration) throws(TLSProblems) {
        settings = configuration.listenersTLS
        files = settings.flatMap { $0?.files ?? [] }
        state = Mutex(State(try Self.read(settings, files, tickets)))
    }

    /// Whether any listener speaks TLS.
    var isUsed: Bool { settings.contains { $0 != nil } }

    /// Reads all files; everything that is wrong with them comes together.
    func read() throws(TLSProblems) -> Read { try Self.read(settings, files, tickets) }

    /// Takes note of what is in use from now on.
    func use(_ read: Read) { state.withLock { $0 = State(read) } }

    /// True when the files are others than those in use.
    func isChanged(by read: Read) -> Bool {
        state.withLock { $0.files.isChanged(by: read.stamps) }
    }

    /// How the files are now, to be compared.
    var stamps: [FileStamp?] { files.map { FileStamp(of: $0) } }

    /// Whether files that look like `stamps` are to be read now.
    func areDue(_ stamps: [FileStamp?]) -> Bool {
        state.withLock { $0.files.isDue(stamps, at: .now) }
    }

    /// Files that looked like `stamps` could not be used; true when that is news.
    func refuse(_ stamps: [FileStamp?], _ problems: TLSProblems) -> Bool {
        state.withLock { $0.files.refuse(stamps, "\(problems)", at: .now) }
    }

    /// What is in use, by listener.
    var contexts: [TLSContext?] { state.withLock { $0.contexts } }

    private static func read(
        _ settings: [TLSSettings?], _ files: [String], _ tickets: TicketKeys
    ) throws(TLSProblems) -> Read {
        // Before the files, so that what changes meanwhile is seen as a change.
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
