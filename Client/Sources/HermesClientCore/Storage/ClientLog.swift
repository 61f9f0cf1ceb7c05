/// The format of the client's file, as functions over bytes.
///
/// ```
/// "HERMESCL" version(1)  then frames:  length(4) checksum(4) records(length)
/// ```
/// Integers have their least significant byte first. A frame holds the records of one change, which
/// is there as a whole or not at all; its checksum is CRC-32C over length and records. A kill, at
/// any byte, leaves a file whose last frame is cut: ``recover(_:)`` leaves it out and tells where
/// the file must be cut before it is appended to.
package enum ClientLog {
    /// The beginning of every file.
    package static let header: [UInt8] = Array("HERMESCL".utf8) + [1]
    /// Bytes of a frame's records. A longer one is a damaged length.
    package static let mostFrameBytes = 16 << 20

    package struct Recovery: Sendable {
        package var state: StoredState
        /// The length in bytes of the file's sound beginning, up to what a kill has cut; what
        /// follows is to be cut off.
        package var soundBytes: Int
        /// Bytes of a last frame that a kill has cut. Nobody was told that they were stored.
        package var droppedBytes: Int
        /// Bytes that cannot be read although they were stored whole. The caller keeps the file
        /// aside, puts ``file(_:)`` in its place and tells.
        package var damagedBytes = 0
    }

    /// The file is not one of these, or of a later version. The caller keeps it aside and begins a
    /// new one: the session with the broker is then unknown, as after a new installation.
    package struct UnknownFile: Error, Hashable, Sendable {}

    /// The frame of encoded records.
    static func frame(_ records: RecordWriter) -> [UInt8] {
        var frame = RecordWriter()
        frame.append(UInt32(truncatingIfNeeded: records.bytes.count))
        frame.append(checksum(records.bytes))
        return frame.bytes + records.bytes
    }

    /// A whole file that holds `state`, one frame for each record, which keeps frames short.
    package static func file(_ state: StoredState) -> [UInt8] {
        state.records.reduce(into: header) { file, record in
            var writer = RecordWriter()
            record.encode(to: &writer)
            file += frame(writer)
        }
    }

    /// Reads a file; an empty one, or one that a kill cut in its header, holds nothing.
    ///
    /// Behind a damaged frame the next sound one is looked for, so that a bit that flips costs one
    /// change, not all that follow it.
    package static func recover(_ file: [UInt8]) throws(UnknownFile) -> Recovery {
        guard file.count >= header.count else {
            guard header.starts(with: file) else { throw UnknownFile() }
            return Recovery(state: StoredState(), soundBytes: 0, droppedBytes: file.count)
        }
        let flips = zip(header, file).reduce(0) { $0 + ($1.0 ^ $1.1).nonzeroBitCount }
        guard flips <= mostHeaderFlips, file[header.count - 1] == header[header.count - 1] else {
            throw UnknownFile()
        }
        var recovery = Recovery(
            state: StoredState(), soundBytes: file.count, droppedBytes: 0,
            damagedBytes: flips > 0 ? header.count : 0)
        var offset = header.count
        while offset < file.count {
            if let (records, end) = nextFrame(file, at: offset) {
                for record in records { recovery.state.apply(record) }
                offset = end
            } else if let next = soundFrame(file, from: offset + 1) {
                recovery.damagedBytes += next - offset
                offset = next
            } else if isCut(file, at: offset) {
                recovery.soundBytes = offset
                recovery.droppedBytes = file.count - offset
                break
            } else {
                recovery.damagedBytes += file.count - offset
                break
            }
        }
        if recovery.damagedBytes > 0 { recovery.state.noteDamage() }
        return recovery
    }

    /// More differing bits than these, and the file is none of a client.
    private static let mostHeaderFlips = 2

    /// The place of the first sound frame from `start` on; an empty one does not count, because
    /// chance would find it in other bytes.
    private static func soundFrame(_ file: [UInt8], from start: Int) -> Int? {
        (start..<max(start, file.count - 8)).first { offset in
            nextFrame(file, at: offset).map { !$0.records.isEmpty } ?? false
        }
    }

    /// True if the file ends within the frame at `offset`, as a kill leaves it; a whole frame whose
    /// length is damaged is not cut.
    private static func isCut(_ file: [UInt8], at offset: Int) -> Bool {
        var fields = RecordFields(file[offset...])
        guard let length = fields.integer(UInt32.self), let sum = fields.integer(UInt32.self)
        else { return true }
        guard Int(length) <= mostFrameBytes, Int(length) > file.count - offset - 8 else {
            return false
        }
        return checksum(file[(offset + 8)...]) != sum
    }

    /// The frame that begins at `offset`; `nil` if it is cut or damaged.
    static func nextFrame(
        _ file: [UInt8], at offset: Int
    ) -> (records: [StoredRecord], end: Int)? {
        var fields = RecordFields(file[offset...])
        guard let length = fields.integer(UInt32.self), Int(length) <= mostFrameBytes,
            let sum = fields.integer(UInt32.self), file.count - offset - 8 >= Int(length)
        else { return nil }
        let end = offset + 8 + Int(length)
        let content = file[offset + 8..<end]
        guard checksum(content) == sum else { return nil }
        var rest = RecordFields(content)
        var records: [StoredRecord] = []
        while !rest.isAtEnd {
            guard let record = StoredRecord.decode(&rest) else { return nil }
            records.append(record)
        }
        return (records, end)
    }

    private static func checksum(_ content: some Collection<UInt8>) -> UInt32 {
        var length = RecordWriter()
        length.append(UInt32(truncatingIfNeeded: content.count))
        return Checksum.crc32c(content, continuing: Checksum.crc32c(length.bytes))
    }
}
