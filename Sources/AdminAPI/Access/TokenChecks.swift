import Credentials
import Logging
import Synchronization
import SystemFiles

/// Checks tokens against a file that is read again after each change, so `hermesctl tokens` takes
/// effect at the next request, even on open connections. If the new file cannot be used, the old
/// tokens stay; a missing file has none.
package final class TokenChecks: Sendable {
    /// The tokens from one state of the file.
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

    let path: String
    private let logger: Logger
    private let state: Mutex<State>

    /// Reads the file at the start, if it exists; any problem is an error.
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

    /// The entry of a token, expired or not; `nil` for an unknown one. Compares the file's stamp.
    func entry(of token: some Collection<UInt8>) -> TokenFile.Entry? {
        current().entry(of: token)
    }

    /// Reads the file, for ``use(_:)``.
    package func read() throws(TokenFileError) -> Tokens { try Self.load(path, logger) }

    /// True when the file differs from the one in use.
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
            // Like an empty file, which is safe: only the administrator's token is valid.
        }
        if let warning = file.accessWarning {
            logger.warning("Token file is open to others", metadata: ["problem": "\(warning)"])
        }
        return Tokens(book: TokenBook(file), stamp: stamp)
    }
}
