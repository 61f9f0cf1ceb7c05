import Glibc
import Structures
import TLS

/// The TLS records of one connection. They are opened into the buffers of plain input, and a turn's
/// output is sealed and sent at once. An idle connection holds no buffer for TLS.
struct RecordStage: BitwiseCopyable {
    /// The index of a record stage in its reactor. It never moves, so its keys are in memory once.
    struct Index: BitwiseCopyable {
        let number: UInt32
    }

    private var channel: SecureChannel
    /// An incomplete record.
    private var begun = KeptInput()
    /// Sealed records that the socket has not taken.
    private var sealed = OutputQueue()
    /// Bytes that are read at once while records are small.
    private static var littleBytes: Int { 8 * 1_024 }
    /// Records are small when they have fewer bytes than this on average.
    private static var smallRecordBytes: Int { 128 }
    /// True when ``begun`` came with the handshake and has not been opened.
    private(set) var isUnopened = false
    /// True when the records that were read last were not many small ones: a record costs as much as
    /// half a kilobyte, however little it holds.
    private var readsMuch = false
    /// True once close_notify or another alert has been sent.
    private var hasEnded = false

    /// Without keys, because a slab copies its first element to places that are never wiped.
    init() { channel = .none }

    /// Takes over an established handshake's keys, with the records it has read and sealed.
    mutating func begin(_ handshake: TLSHandshake, _ bench: inout Workbench) {
        guard handshake.takeChannel(into: &channel) else {
            preconditionFailure("an established handshake without keys")
        }
        handshake.withRest { input, output in
            bench.countReceived(input.count)
            keep(input, from: 0, &bench)
            isUnopened = !input.isEmpty
            sealed.append(output, pool: bench.pool)
        }
    }

    /// Memory of the incomplete record.
    var heldBytes: Int { begun.capacity }

    /// True when the peer has asked for a KeyUpdate, which goes with the next output or event.
    /// Repeated requests get one answer (RFC 8446, section 4.6.3).
    var owesKeyUpdate: Bool { channel.owesKeyUpdate }

    /// The alert that answers the peer's broken record; `closeNotify` if the peer itself sent an
    /// alert; `nil` without a broken record.
    var brokenRecordAlert: SecureChannel.Alert? {
        switch channel.state {
        case .open, .closed: nil
        case .aborted: .closeNotify
        case .failed(let alert): alert
        }
    }

    // MARK: Reading

    /// Reads once, and opens the complete records `gap` bytes behind the kept input; the caller fills
    /// the gap, of at most ``Workbench/largestGap``.
    mutating func receive(
        _ descriptor: CInt, _ kept: inout KeptInput, gap: Int = 0, _ bench: inout Workbench
    ) -> StageInput {
        if let end { return end }
        let records = bench.records
        let begunCount = begun.count
        if let base = begun.bytes.baseAddress {
            records.copyMemory(from: base, byteCount: begunCount)
        }
        var arrived = UnsafeRawBufferPointer(start: records, count: begunCount)
        if isUnopened {
            isUnopened = false
        } else {
            let most = Workbench.recordBytes - begunCount
            let (count, code) = bench.receive(
                descriptor, into: records + begunCount,
                count: readsMuch ? most : min(most, Self.littleBytes))
            guard count > 0 else { return .nothing(count, code) }
            arrived = UnsafeRawBufferPointer(start: records, count: begunCount + count)
        }
        let room = kept.room(for: gap + arrived.count, bench)
        let begin = room.kept + gap
        let opened = channel.open(arrived, into: room.base + begin, &bench.ciphers)
        bench.recordsOpened &+= UInt64(opened.records)
        readsMuch = opened.consumed >= opened.records * Self.smallRecordBytes
        keep(arrived, from: opened.consumed, &bench)
        guard opened.produced > 0 else { return end ?? .wouldBlock }
        if !channel.isOpen {
            // Input before the end is processed first; an event then reports the end.
            SocketShutdown.ofReading(descriptor)
        }
        return .bytes(
            UnsafeRawBufferPointer(start: room.base, count: begin + opened.produced))
    }

    /// The peer has sent a fatal alert: nothing is sent any more.
    private var isAborted: Bool {
        if case .aborted = channel.state { true } else { false }
    }

    /// The end of the peer's direction, if it has been read.
    private var end: StageInput? {
        switch channel.state {
        case .open: nil
        case .closed: .endOfStream
        case .aborted, .failed: .brokenRecord
        }
    }

    /// Keeps an incomplete record.
    private mutating func keep(
        _ bytes: UnsafeRawBufferPointer, from consumed: Int, _ bench: inout Workbench
    ) {
        let former = begun.capacity
        begun.keep(bytes, from: channel.isOpen ? consumed : bytes.count, in: bench.pool)
        bench.held.noteRecord(from: former, to: begun.capacity)
    }

    // MARK: Sending

    /// Sealed output up to this size, such as a session ticket, is sent together with the next
    /// records; more is sent alone.
    private static var movableSealedBytes: Int { 2 * 1_024 }

    /// Seals and sends the output's first `most` bytes in pieces of the shared buffer. Records that the socket does not
    /// take are kept, and no more are sealed before they are sent.
    mutating func send(
        _ descriptor: CInt, _ output: inout OutputQueue, atMost most: Int = .max,
        _ bench: inout Workbench
    ) -> StageOutput {
        if isAborted {
            output.removeAll(in: bench.pool)
            sealed.removeAll(in: bench.pool)
            return .all
        }
        var left = most
        while true {
            let records = bench.records
            var size = 0
            if sealed.count <= Self.movableSealedBytes {
                size = bench.move(&sealed, atMost: Self.movableSealedBytes, to: records)
            } else {
                let outcome = bench.send(descriptor, &sealed)
                guard case .all = outcome else { return outcome }
            }
            size = seal(&output, atMost: &left, into: records, from: size, &bench)
            guard size > 0 else { return .all }
            let (taken, outcome) = bench.send(descriptor, records, count: size)
            guard case .all = outcome else {
                // After a failure the connection closes without sending them.
                sealed.append(
                    UnsafeRawBufferPointer(start: records + taken, count: size - taken),
                    pool: bench.pool)
                return outcome
            }
        }
    }

    /// Seals output, `left` bytes at most, after the `begun` bytes in the buffer; returns the total size.
    private mutating func seal(
        _ output: inout OutputQueue, atMost left: inout Int, into records: UnsafeMutableRawPointer,
        from begun: Int, _ bench: inout Workbench
    ) -> Int {
        var size = begun
        while true {
            let wanted = min(output.count, left, channel.largestFragment)
            // Leaves room for a KeyUpdate before it.
            guard size + wanted + 3 * SecureChannel.largestOverhead <= Workbench.recordBytes else {
                break
            }
            if channel.needsKeyUpdate {
                size += channel.sealKeyUpdate(in: records + size, &bench.ciphers)
            }
            guard wanted > 0 else { break }
            let content = records + size + channel.contentOffset
            let count = bench.move(&output, atMost: wanted, to: content)
            left -= count
            size += channel.seal(count, in: records + size, &bench.ciphers)
        }
        return size
    }

    // MARK: Ending

    /// Sends close_notify or the alert for a broken record once, without waiting.
    mutating func sendCloseNotify(_ descriptor: CInt, _ bench: inout Workbench) {
        guard !hasEnded, !isAborted, case .all = bench.send(descriptor, &sealed) else { return }
        hasEnded = true
        let records = bench.records
        let size = channel.sealEnd(in: records, &bench.ciphers)
        _ = bench.send(descriptor, records, count: size)
    }

    /// Sends the last alert, frees the TLS state of a closing connection, and wipes its keys.
    mutating func close(_ descriptor: CInt, _ bench: inout Workbench) {
        sendCloseNotify(descriptor, &bench)
        bench.held.noteRecord(from: begun.capacity, to: 0)
        begun.release(in: bench.pool)
        sealed.removeAll(in: bench.pool)
        channel.eraseKeys(&bench.ciphers)
    }
}
