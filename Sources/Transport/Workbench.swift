import CLinux
import Glibc
import Structures
import SystemFiles
import TLS

/// The buffers, cipher contexts and counters shared by the stages of all connections. One
/// connection uses them at a time and leaves no data behind.
struct Workbench: ~Copyable {
    /// Never read; see the same in ``Reactor``.
    private let addressOnly: any Sendable = ()
    static var inputBytes: Int { 64 * 1_024 }
    private static var littleInputBytes: Int { 4 * 1_024 }
    /// Opened records of one read must fit after the kept input.
    static var recordBytes: Int { inputBytes - KeptInput.movableBytes }
    /// The most bytes that a stage may leave free between kept input and what is read.
    static var largestGap: Int { FrameDecoder.mostUnread }
    private static var segmentCapacity: Int { 64 }

    let pool: BytePool
    /// Input for the owner, unless the connection has a large buffer of its own.
    let input: UnsafeMutableRawPointer
    /// The payload of a control frame of WebSocket.
    let control: UnsafeMutableRawPointer
    private let segments: UnsafeMutablePointer<OutputQueue.Segment>
    /// Allocated for the first TLS connection.
    private var storedRecords: UnsafeMutableRawPointer?
    var ciphers = RecordCiphers()
    var held = HeldInput()
    /// True while one `recv` takes only a little.
    var readsLittle = false
    /// While owners hold back this much, too.
    var heldBackBound = Int.max
    /// The longest payload of one frame of WebSocket.
    var mostFramePayload = Int.max
    private(set) var bytesReceived: UInt64 = 0
    private(set) var bytesSent: UInt64 = 0
    /// TLS records that were opened.
    var recordsOpened: UInt64 = 0
    /// Calls that failed because the kernel lacked memory.
    private(set) var shortages: UInt64 = 0

    init(pool: BytePool) {
        self.pool = pool
        input = .allocate(byteCount: Self.inputBytes + Self.largestGap, alignment: 64)
        control = .allocate(byteCount: FrameDecoder.largestControlPayload, alignment: 16)
        segments = .allocate(capacity: Self.segmentCapacity)
        segments.initialize(repeating: OutputQueue.Segment(), count: Self.segmentCapacity)
    }

    deinit {
        input.deallocate()
        control.deallocate()
        segments.deallocate()
        storedRecords?.deallocate()
    }

    /// The buffer for TLS records being read or sent, of ``recordBytes``.
    var records: UnsafeMutableRawPointer {
        mutating get {
            if let storedRecords { return storedRecords }
            let buffer = UnsafeMutableRawPointer.allocate(
                byteCount: Self.recordBytes, alignment: 64)
            storedRecords = buffer
            return buffer
        }
    }

    /// True for the `errno` of a call that the kernel has no memory for at present. No peer is at
    /// fault, so the call is made again.
    static func isShortage(_ code: CInt) -> Bool { code == ENOMEM || code == ENOBUFS }

    // MARK: Receiving

    /// One `recv`; on failure -1, with `errno` as second value.
    @inline(__always)
    mutating func receive(
        _ descriptor: CInt, into target: UnsafeMutableRawPointer, count: Int
    ) -> (count: Int, code: CInt) {
        let isLittle = readsLittle || held.heldBack >= heldBackBound
        let most = isLittle ? min(count, Self.littleInputBytes) : count
        let (received, code) = retrying { recv(descriptor, target, most, 0) }
        if received > 0 {
            countReceived(received)
        } else if Self.isShortage(code) {
            shortages += 1
        }
        return (received, code)
    }

    /// As ``receive(_:into:count:)``, but the bytes stay in the kernel.
    func peek(
        _ descriptor: CInt, into target: UnsafeMutableRawPointer, count: Int
    ) -> (count: Int, code: CInt) {
        let (received, code) = retrying { recv(descriptor, target, count, CInt(MSG_PEEK)) }
        return (received, code)
    }

    /// Counts bytes that the handshake has read, once records begin.
    mutating func countReceived(_ count: Int) { bytesReceived += UInt64(count) }

    /// Reads once and drops the bytes: closing with unread input would reset the connection, and
    /// the peer might not see the last alert.
    func discardInput(_ descriptor: CInt) { _ = recv(descriptor, input, Self.inputBytes, 0) }

    // MARK: Sending

    /// Sends as much of the queue as the socket takes.
    @inline(__always)
    mutating func send(_ descriptor: CInt, _ output: inout OutputQueue) -> StageOutput {
        while !output.isEmpty {
            let count = output.fill(segments, capacity: Self.segmentCapacity)
            let (sent, code) = retrying {
                count == 1
                    ? hermes_send(descriptor, segments[0].base, segments[0].count)
                    : hermes_send_vector(descriptor, segments, count)
            }
            guard sent >= 0 else { return sendFailed(code) }
            bytesSent += UInt64(sent)
            output.consume(sent, pool: pool)
        }
        return .all
    }

    /// As ``send(_:_:)``, but only the first `most` bytes.
    mutating func send(
        _ descriptor: CInt, _ output: inout OutputQueue, atMost most: Int
    ) -> StageOutput {
        var left = most
        while left > 0, !output.isEmpty {
            var (count, size) = (0, 0)
            let filled = output.fill(segments, capacity: Self.segmentCapacity)
            while count < filled, size < left {
                segments[count].count = min(segments[count].count, left - size)
                size += segments[count].count
                count += 1
            }
            let (sent, code) = retrying { hermes_send_vector(descriptor, segments, count) }
            guard sent >= 0 else { return sendFailed(code) }
            bytesSent += UInt64(sent)
            output.consume(sent, pool: pool)
            left -= sent
        }
        return .all
    }

    /// Sends the bytes; returns how many the socket took, and whether that was all.
    mutating func send(
        _ descriptor: CInt, _ bytes: UnsafeRawPointer, count: Int
    ) -> (taken: Int, outcome: StageOutput) {
        let (sent, code) = retrying { hermes_send(descriptor, bytes, count) }
        guard sent >= 0 else { return (0, sendFailed(code)) }
        bytesSent += UInt64(sent)
        return (sent, sent == count ? .all : .blocked)
    }

    /// The result for the `errno` of a failed send.
    private mutating func sendFailed(_ code: CInt) -> StageOutput {
        if code == EAGAIN || code == EWOULDBLOCK { return .blocked }
        guard Self.isShortage(code) else { return .failed(code: code) }
        shortages += 1
        return .blocked
    }

    /// Moves the first bytes of the output to a buffer; returns their number.
    func move(
        _ output: inout OutputQueue, atMost wanted: Int, to target: UnsafeMutableRawPointer
    ) -> Int {
        let count = output.fill(segments, capacity: Self.segmentCapacity)
        var copied = 0
        for segment in 0..<count where copied < wanted {
            guard let base = segments[segment].base else { continue }
            let part = min(segments[segment].count, wanted - copied)
            (target + copied).copyMemory(from: base, byteCount: part)
            copied += part
        }
        output.consume(copied, pool: pool)
        return copied
    }
}
