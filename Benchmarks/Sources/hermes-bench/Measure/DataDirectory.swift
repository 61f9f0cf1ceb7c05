import Glibc

/// A broker's data on disk, seen from outside.
struct DataDirectory {
    /// Bytes that the file system holds for the files, as `du` counts them.
    struct Usage {
        var total: UInt64 = 0
        /// Of the largest file, which is where a broker keeps what waits.
        var largestFile: UInt64 = 0
    }

    let path: String

    init(path: String) throws(BenchFailure) {
        self.path = path
        _ = try usage()
    }

    /// Of the files directly in the folder and one folder below it.
    func usage() throws(BenchFailure) -> Usage {
        var usage = Usage()
        try add(path, below: 1, to: &usage)
        return usage
    }

    private func add(
        _ folder: String, below depth: Int, to usage: inout Usage
    ) throws(BenchFailure) {
        guard let stream = opendir(folder) else {
            throw BenchFailure(
                "--data-directory \(Text.visible(folder)) cannot be read: "
                    + "\(String(cString: strerror(errno))). Name the folder of the broker's data.")
        }
        defer { _ = closedir(stream) }
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard name != ".", name != ".." else { continue }
            var status = stat()
            // The broker has deleted the file in the meantime.
            guard lstat("\(folder)/\(name)", &status) == 0 else { continue }
            switch status.st_mode & S_IFMT {
            case S_IFREG:
                let bytes = UInt64(status.st_blocks) * 512
                usage.total += bytes
                usage.largestFile = max(usage.largestFile, bytes)
            case S_IFDIR where depth > 0:
                try add("\(folder)/\(name)", below: depth - 1, to: &usage)
            default: continue
            }
        }
    }
}
