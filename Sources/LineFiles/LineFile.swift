/// The form of one kind of ``LineFile``: what stands on a line, and the words of its messages.
///
/// A value of the type reads one file, so that it can refuse a line for one above it.
package protocol LineFormat: Sendable {
    associatedtype Entry: Equatable, Sendable
    associatedtype Complaint: Error, Equatable, Sendable, CustomStringConvertible

    /// The kind of file, such as `password file`.
    static var noun: String { get }
    /// The way to a first entry, as it stands between "Create it by" and the path.
    static var creation: String { get }
    static var maximumByteCount: Int { get }
    /// A file that somebody else could change is refused, for this is what they could do; `nil` only
    /// warns of it.
    static var threat: String? { get }

    init()

    /// Reads a line that is neither blank nor a comment; `number` counts from 1.
    mutating func entry(
        on line: ArraySlice<UInt8>, number: Int
    ) throws(Complaint) -> Entry

    /// The line of an entry, without line end.
    static func text(of entry: Entry) -> [UInt8]
}

/// A text file that holds one entry a line.
///
/// Lines that begin with `#` (after blanks) are comments, and blank lines are allowed; both keep
/// their place when the file is changed. Any other line is an error with its number: nothing that is
/// malformed ever becomes an entry.
package struct LineFile<Format: LineFormat>: Sendable, Equatable {
    package typealias Entry = Format.Entry

    package static var maximumByteCount: Int { Format.maximumByteCount }

    private enum Line: Sendable, Equatable {
        /// A comment or a blank line, without its line end.
        case kept([UInt8])
        case entry(Entry)
    }

    private var lines: [Line] = []
    /// The reason for which others than the owner may read or change the file that this was loaded
    /// from, with the cure; `nil` if they may not.
    package internal(set) var accessWarning: String?

    /// A file without entries.
    package init() {}

    /// Reads a file's contents; `path` is for the error, which names every malformed line.
    package init(parsing contents: [UInt8], path: String) throws(LineFileError<Format>) {
        var problems: [LineFileProblem<Format>] = []
        var text = contents[...]
        if text.starts(with: [0xEF, 0xBB, 0xBF]) {
            problems.append(LineFileProblem(line: 1, kind: .byteOrderMark))
            text = text.dropFirst(3)
        }
        var format = Format()
        var all = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        // An empty rest after the last line end is no line.
        if all.last?.isEmpty == true { all.removeLast() }
        for (index, line) in all.enumerated() {
            do throws(LineFileProblem<Format>.Kind) {
                lines.append(try Self.parse(line, number: index + 1, &format))
            } catch {
                problems.append(LineFileProblem(line: index + 1, kind: error))
            }
        }
        if !problems.isEmpty { throw .malformed(path: path, problems) }
    }

    private static func parse(
        _ line: ArraySlice<UInt8>, number: Int, _ format: inout Format
    ) throws(LineFileProblem<Format>.Kind) -> Line {
        if line.last == UInt8(ascii: "\r") { throw .carriageReturn }
        let first = line.first { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }
        guard let first, first != UInt8(ascii: "#") else { return .kept(Array(line)) }
        // Blanks behind an entry cannot be seen, and no entry ends with one.
        let end = line.lastIndex { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }
        let text = line[...(end ?? line.startIndex)]
        do throws(Format.Complaint) {
            return .entry(try format.entry(on: text, number: number))
        } catch {
            throw .entry(error)
        }
    }

    /// All entries, in the file's order.
    package var entries: [Entry] {
        lines.compactMap { line in
            if case .entry(let entry) = line { entry } else { nil }
        }
    }

    /// The file as it is stored: every line ends with a line feed.
    package var contents: [UInt8] {
        var bytes: [UInt8] = []
        for line in lines {
            switch line {
            case .kept(let text): bytes += text
            case .entry(let entry): bytes += Format.text(of: entry)
            }
            bytes.append(UInt8(ascii: "\n"))
        }
        return bytes
    }

    /// Adds an entry at the end.
    package mutating func append(_ entry: Entry) {
        lines.append(.entry(entry))
    }

    /// Puts an entry in the place of the first one that matches; false if none does.
    package mutating func replace(with entry: Entry, where matches: (Entry) -> Bool) -> Bool {
        guard let index = index(where: matches) else { return false }
        lines[index] = .entry(entry)
        return true
    }

    /// Puts other entries in the places of those for which `other` has one.
    package mutating func replaceEach(with other: (Entry) -> Entry?) {
        for (index, line) in lines.enumerated() {
            guard case .entry(let entry) = line, let replacement = other(entry) else { continue }
            lines[index] = .entry(replacement)
        }
    }

    /// Removes the first entry that matches; false if none does.
    package mutating func remove(where matches: (Entry) -> Bool) -> Bool {
        guard let index = index(where: matches) else { return false }
        lines.remove(at: index)
        return true
    }

    /// Removes all entries that match; returns their number.
    @discardableResult
    package mutating func removeAll(where matches: (Entry) -> Bool) -> Int {
        let before = lines.count
        lines.removeAll { line in
            if case .entry(let entry) = line { matches(entry) } else { false }
        }
        return before - lines.count
    }

    private func index(where matches: (Entry) -> Bool) -> Int? {
        lines.firstIndex { line in
            if case .entry(let entry) = line { matches(entry) } else { false }
        }
    }
}
