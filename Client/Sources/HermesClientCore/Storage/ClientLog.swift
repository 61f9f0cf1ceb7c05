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
        /// The length in bytes of the file's sound beginning: what follows is to be cut off.
        package var soundBytes: Int
        /// Bytes that were left out. A kill leaves less than one frame; more tells of a damaged
        /// file.
        package var droppedBytes: Int
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
    package static func recover(_ file: [UInt8]) throws(UnknownFile) -> Recovery {
        guard header.prefix(file.count).elementsEqual(file.prefix(header.count)) else {
            throw UnknownFile()
        }
        guard file.count >= header.count else {
            return Recovery(state: StoredState(), soundBytes: 0, droppedBytes: file.count)
        }
        var state = StoredState()
        var offset = header.count
        while let (records, end) = nextFrame(file, at: offset) {
            for record in records { state.apply(record) }
            offset = end
        }
        return Recovery(state: state, soundBytes: offset, droppedBytes: file.count - offset)
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
