import Credentials
import Logging
import Synchronization
import SystemFiles

/// Finds tokens in a file that is read again whenever it has changed, so that `hermesctl tokens` takes
/// effect at the next request, on open connections too. A file that turned bad leaves the tokens as they
/// were; one that is not there has none.
package final class TokenChecks: Sendable {
    /// One state of the file, good to check tokens against.
    package struct Tokens: Sendable {
        fileprivate var book: TokenBook
        fileprivate var stamp: FileStamp?
    }

    private struct State {
        var book: TokenBook
        var file: WatchedFiles<FileStamp?>

        init(_ tokens: Tokens) {
            book = tokens.book
            file = WatchedFiles(inUse: tokens.stamp)
        }
    }

    private let path: String
    private let logger: Logger
    private let state: Mutex<State>

    /// Reads the file, which must be good at the start if it is there.
    package init(path: String, logger: Logger) throws(TokenFileError) {
        self.path = path
        self.logger = logger
        let tokens = try Self.load(path, logger)
        state = Mutex(State(tokens))
        if tokens.book.count > 0 {
            logger.info(
                "Token file read", metadata: ["file": "\(path)", "tokens": "\(tokens.book.count)"])
        }
    }

    /// The entry of a token, expired or not; `nil` for an unknown one. One look at the file's stamp.
    func entry(of token: some Collection<UInt8>) -> TokenFile.Entry? {
        current().entry(of: token)
    }

    /// The file as it is now, for ``use(_:)``.
    package func read() throws(TokenFileError) -> Tokens { try Self.load(path, logger) }

    /// True when the file is another than that in use.
    package func isChanged(by tokens: Tokens) -> Bool {
        state.withLock { $0.file.isChanged(by: tokens.stamp) }
    }

    package func use(_ tokens: Tokens) {
        if isChanged(by: tokens) { sayReadAgain(tokens) }
        state.withLock { $0 = State(tokens) }
    }

    private func current() -> TokenBook {
        let stamp = FileStamp(of: path)
        return state.withLock { state in
            guard state.file.isDue(stamp, at: .now) else { return state.book }
            do throws(TokenFileError) {
                let tokens = try Self.load(path, logger)
                state = State(tokens)
                sayReadAgain(tokens)
            } catch {
                guard state.file.refuse(stamp, "\(error)", at: .now) else { return state.book }
                for problem in "\(error)".split(separator: "\n") {
                    logger.error(
                        "Token file unusable, tokens stay as they were",
                        metadata: ["problem": "\(problem)"])
                }
            }
            return state.book
        }
    }

    private func sayReadAgain(_ tokens: Tokens) {
        logger.info(
            "Token file read again",
            metadata: ["file": "\(path)", "tokens": "\(tokens.book.count)"])
    }

    private static func load(_ path: String, _ logger: Logger) throws(TokenFileError) -> Tokens {
        let stamp = FileStamp(of: path)
        var file = TokenFile()
        do throws(TokenFileError) {
            file = try TokenFile.load(path: path)
        } catch .missing {
            // As good as empty, and the safe side: no token but the administrator's counts.
        }
        if let warning = file.accessWarning {
            logger.warning("Token file is open to others", metadata: ["problem": "\(warning)"])
        }
        return Tokens(book: TokenBook(file), stamp: stamp)
    }
}
