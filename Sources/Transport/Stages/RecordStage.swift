import Glibc
import Structures
import TLS

/// TLS records of one connection: opened into the buffers that plain input uses, and sealed so that all
/// output of a turn shares records and one send. An idle connection holds nothing else for TLS.
struct RecordStage: BitwiseCopyable {
    /// The place of a connection's record stage among those of its reactor, which never moves: its keys
    /// are in memory once.
    struct Index: BitwiseCopyable {
        let number: UInt32
    }

    private var channel: SecureChannel
    /// The begin of a record whose end has not arrived.
    private var begun = KeptInput()
    /// Records that the socket has not taken yet.
    private var sealed = OutputQueue()
    /// ``begun`` came with the handshake, and nobody has looked at it.
    private(set) var isUnopened = false
    /// The output has ended: close_notify or another alert has left.
    private var hasEnded = false

    /// Without keys: a slab copies its first element to places that nobody wipes.
    init() { channel = .none }

    /// Moves the keys of an established handshake here, with the records that it has read and sealed.
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

    /// Memory of the record that has not arrived whole.
    var heldBytes: Int { begun.capacity }

    /// A KeyUpdate of the peer wants one of ours: with the next output, or with the next event. However
    /// often the peer asks before it reads, it gets one answer (RFC 8446, section 4.6.3).
    var owesKeyUpdate: Bool { channel.owesKeyUpdate }

    /// The alert that answers the records of the peer: `closeNotify` when the peer itself sent an alert;
    /// `nil` when no record is to blame.
    var brokenRecordAlert: SecureChannel.Alert? {
        switch channel.state {
        case .open, .closed: nil
        case .failed: channel.alert
        }
    }

    // MARK: Reading

    /// Reads once, and opens the whole records behind the input that the owner left.
    mutating func receive(
        _ descriptor: CInt, _ kept: inout KeptInput, _ bench: inout Workbench
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
            let (count, code) = bench.receive(
                descriptor, into: records + begunCount, count: Workbench.recordBytes - begunCount)
            guard count > 0 else { return .nothing(count, code) }
            arrived = UnsafeRawBufferPointer(start: records, count: begunCount + count)
        }
        let room = kept.room(for: arrived.count, bench)
        let opened = channel.open(arrived, into: room.base + room.kept, &bench.ciphers)
        keep(arrived, from: opened.consumed, &bench)
        guard opened.produced > 0 else { return end ?? .wouldBlock }
        if channel.state != .open {
            // The bytes before the end count first; an event brings the owner back for the end.
            _ = shutdown(descriptor, CInt(SHUT_RD))
        }
        return .bytes(
            UnsafeRawBufferPointer(start: room.base, count: room.kept + opened.produced))
    }

    /// The end of the peer's direction, once it has come.
    private var end: StageInput? {
        switch channel.state {
        case .open: nil
        case .closed: .endOfStream
        case .failed: .brokenRecord
        }
    }

    /// Keeps the record that is not whole yet.
    private mutating func keep(
        _ bytes: UnsafeRawBufferPointer, from consumed: Int, _ bench: inout Workbench
    ) {
        let former = begun.capacity
        let isOpen = channel.state == .open
        begun.keep(bytes, from: isOpen ? consumed : bytes.count, in: bench.pool)
        bench.held.noteRecord(from: former, to: begun.capacity)
    }

    // MARK: Sending

    /// So much that waits sealed shares a send with the next records, a session ticket above all; more
    /// leaves by itself.
    private static var movableSealedBytes: Int { 2 * 1_024 }

    /// Seals the output, as much as fits the shared buffer at a time, and sends it. Records that the
    /// socket does not take wait sealed, and nothing more is sealed before they have left.
    mutating func send(
        _ descriptor: CInt, _ output: inout OutputQueue, _ bench: inout Workbench
    ) -> StageOutput {
        while true {
            let records = bench.records
            var size = 0
            if sealed.count <= Self.movableSealedBytes {
                size = bench.move(&sealed, atMost: Self.movableSealedBytes, to: records)
            } else {
                let outcome = bench.send(descriptor, &sealed)
                guard case .all = outcome else { return outcome }
            }
            size = seal(&output, into: records, from: size, &bench)
            guard size > 0 else { return .all }
            let (taken, outcome) = bench.send(descriptor, records, count: size)
            guard case .all = outcome else {
                // After a failure the connection closes, and nobody sends them.
                sealed.append(
                    UnsafeRawBufferPointer(start: records + taken, count: size - taken),
                    pool: bench.pool)
                return outcome
            }
        }
    }

    /// Moves output into records, behind the `begun` bytes there; returns the size of all.
    private mutating func seal(
        _ output: inout OutputQueue, into records: UnsafeMutableRawPointer, from begun: Int,
        _ bench: inout Workbench
    ) -> Int {
        var size = begun
        while true {
            let wanted = min(output.count, Int(channel.largestFragment))
            // Room for a KeyUpdate before it.
            guard size + wanted + 3 * SecureChannel.largestOverhead <= Workbench.recordBytes else {
                break
            }
            if channel.needsKeyUpdate {
                size += channel.sealKeyUpdate(in: records + size, &bench.ciphers)
            }
            guard wanted > 0 else { break }
            let content = records + size + channel.contentOffset
            let count = bench.move(&output, atMost: wanted, to: content)
            size += channel.seal(count, in: records + size, &bench.ciphers)
        }
        return size
    }

    // MARK: Ending

    /// Tells the peer, once, that nothing more comes or what was wrong with its records: a best effort,
    /// for which nothing waits.
    mutating func sendCloseNotify(_ descriptor: CInt, _ bench: inout Workbench) {
        guard !hasEnded, case .all = bench.send(descriptor, &sealed) else { return }
        hasEnded = true
        let record = bench.records
        let alert = channel.alert
        let size = channel.seal(alert, in: record, &bench.ciphers)
        _ = bench.send(descriptor, record, count: size)
    }

    /// Says goodbye, and frees and wipes everything that TLS holds for a connection that closes.
    mutating func close(_ descriptor: CInt, _ bench: inout Workbench) {
        sendCloseNotify(descriptor, &bench)
        bench.held.noteRecord(from: begun.capacity, to: 0)
        begun.release(in: bench.pool)
        sealed.removeAll(in: bench.pool)
        channel.eraseKeys(&bench.ciphers)
    }
}
