import FuzzChecks
import Glibc

/// One input that is kept in the repository.
struct CorpusFile {
    let path: String
    let bytes: [UInt8]

    /// The inputs of one check, by name; none if the folder does not exist.
    static func all(in folder: String, of check: FuzzCheck) throws -> [CorpusFile] {
        let directory = "\(repository)/Fuzz/\(folder)/\(check.rawValue)"
        return try names(in: directory).map { name in
            CorpusFile(path: "\(directory)/\(name)", bytes: try read("\(directory)/\(name)"))
        }
    }

    /// The folder above `Tests/FuzzCorpusTests`.
    private static var repository: String {
        #filePath.split(separator: "/").dropLast(3).reduce("") { "\($0)/\($1)" }
    }

    private static func names(in directory: String) throws -> [String] {
        guard let stream = opendir(directory) else {
            guard errno == ENOENT else { throw UnreadableFile(path: directory, code: errno) }
            return []
        }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { name in
                name.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !name.hasPrefix(".") { names.append(name) }
        }
        return names.sorted()
    }

    private static func read(_ path: String) throws -> [UInt8] {
        let descriptor = open(path, O_RDONLY)
        guard descriptor >= 0 else { throw UnreadableFile(path: path, code: errno) }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = Glibc.read(descriptor, &bytes, bytes.count)
        guard count >= 0 else { throw UnreadableFile(path: path, code: errno) }
        return [UInt8](bytes.prefix(count))
    }
}

/// A file of the corpora cannot be read.
struct UnreadableFile: Error {
    let path: String
    let code: CInt
}
