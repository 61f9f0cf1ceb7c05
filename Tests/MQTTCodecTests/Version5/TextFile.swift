import Glibc

/// A text file of the repository.
enum TextFile {
    /// The file's text; empty if it cannot be read. The path is that from the repository's folder.
    static func read(_ path: String) -> String {
        let folder = #filePath.split(separator: "/").dropLast(4).reduce("") { "\($0)/\($1)" }
        guard let file = fopen("\(folder)/\(path)", "r") else { return "" }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1_024 * 1_024)
        let count = fread(&bytes, 1, bytes.count, file)
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}
