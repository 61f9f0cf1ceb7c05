import ArgumentParser
import Glibc

/// Options of all measurements.
struct StoreOptions: ParsableArguments {
    @Argument(help: "A directory on the disk to be measured.")
    var directory: String

    @Option(help: "Also write the figures to this file, as JSON.")
    var json: String?

    /// Runs with a new directory inside the given one, which is deleted afterwards.
    func withScratchDirectory<Result>(
        _ body: (String) throws -> Result
    ) throws -> Result {
        let path = "\(directory)/store-bench.\(getpid())"
        guard mkdir(path, 0o700) == 0 else {
            throw BenchFailure(
                "\(Text.visible(path)) cannot be made: \(String(cString: strerror(errno)))")
        }
        defer { ScratchDirectory.remove(path) }
        return try body(path)
    }
}

/// Deletes the files of a measurement.
enum ScratchDirectory {
    /// Deletes a directory with its content, as far as possible.
    static func remove(_ path: String) {
        if let stream = opendir(path) {
            var names: [String] = []
            while let entry = readdir(stream) {
                names.append(
                    withUnsafePointer(to: &entry.pointee.d_name) { name in
                        name.withMemoryRebound(to: CChar.self, capacity: 256) {
                            String(cString: $0)
                        }
                    })
            }
            closedir(stream)
            for name in names where name != "." && name != ".." {
                let child = "\(path)/\(name)"
                if unlink(child) != 0 { remove(child) }
            }
        }
        _ = rmdir(path)
    }
}
