/// A file of the broker that a backup takes along, beside the database.
public struct BackupFile: Sendable {
    /// Its name in the backup's folder.
    public var name: String
    public var contents: [UInt8]

    public init(name: String, contents: [UInt8]) {
        precondition(!name.isEmpty && !name.utf8.contains(UInt8(ascii: "/")), "a file \(name)")
        self.name = name
        self.contents = contents
    }
}
