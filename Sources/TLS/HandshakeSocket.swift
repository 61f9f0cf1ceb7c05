import CLinux
import COpenSSL
import Glibc

/// The socket during a handshake, as OpenSSL sees it, with few system calls.
///
/// OpenSSL reads the header and the content of each record separately, and reads once more to learn
/// that there is nothing. Here one system call reads all that the socket holds. Bytes behind the
/// handshake stay in ``input`` for the connection's next reader. The session ticket at the end of a
/// TLS 1.3 handshake is kept in ``output``: no client waits for it, so it is sent with the broker's
/// first answer.
struct HandshakeSocket: ~Copyable {
    /// A client's first flight with a post-quantum key share has some 1,800 bytes.
    private static let inputCapacity = 2 * 1_024
    /// The most bytes that a client may send in a handshake. The size of its certificate list has a
    /// limit of its own.
    static let mostBytes = 128 * 1_024
    /// The most reads that OpenSSL may make. A certificate list of 32 KiB in records of 64 bytes,
    /// with two reads per record, takes half of them.
    static let mostReads = 2_048

    /// The progress of the broker's last flight.
    private enum FlightState {
        /// The broker's Finished has not been written.
        case open
        /// The broker's Finished of TLS 1.3 has been written and is sent with the next flush.
        case ends
        /// From now on, writes are kept in ``output``.
        case over
    }

    let descriptor: CInt
    private let buffer: UnsafeMutableRawPointer
    private var start = 0
    private var end = 0
    /// True after a read that took all bytes of the socket, until the next step.
    private var isDrained = false
    private var bytesRead = 0
    /// The first bytes that the client has sent.
    private var opening = InlineArray<5, UInt8>(repeating: 0)
    private var reads = 0
    /// True when the client has sent more than a handshake needs; no more is read then.
    private(set) var isOverBudget = false
    private var flight = FlightState.open
    /// The last bytes that were sent.
    private var tail = InlineArray<45, UInt8>(repeating: 0)
    /// Bytes to be sent after the handshake.
    private(set) var output: [UInt8] = []

    /// Does not own the descriptor and never closes it.
    init(_ descriptor: CInt) {
        self.descriptor = descriptor
        buffer = .allocate(byteCount: Self.inputCapacity, alignment: 16)
    }

    deinit { buffer.deallocate() }

    /// Bytes that were read and do not belong to the handshake.
    var input: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: buffer + start, count: end - start)
    }

    /// Begins another step: the socket may have bytes again.
    mutating func beginStep() { isDrained = false }

    /// OpenSSL has written the broker's Finished of TLS 1.3.
    mutating func noteFinished() { flight = .ends }

    /// OpenSSL has written the whole flight.
    mutating func flush() { if flight == .ends { flight = .over } }

    /// Sends ``output`` of a handshake that failed, as far as the socket takes it at once.
    mutating func sendOutput() {
        guard !output.isEmpty else { return }
        _ = hermes_send(descriptor, output, output.count)
        output = []
    }

    /// The result of ``read(_:_:)`` and ``write(_:_:)``.
    enum Result {
        case bytes(Int)
        case wouldBlock
        case ended
        case failed
    }

    mutating func read(_ target: UnsafeMutableRawPointer, _ size: Int) -> Result {
        guard reads < Self.mostReads, bytesRead <= Self.mostBytes else {
            isOverBudget = true
            return .failed
        }
        if start == end {
            guard !isDrained else { return .wouldBlock }
            let count = recv(descriptor, buffer, Self.inputCapacity, 0)
            guard count > 0 else {
                if count == 0 { return .ended }
                return Self.isTemporary(errno) ? .wouldBlock : .failed
            }
            (start, end) = (0, count)
            noteOpening()
            bytesRead += count
            isDrained = count < Self.inputCapacity
        }
        let count = min(size, end - start)
        target.copyMemory(from: buffer + start, byteCount: count)
        start += count
        reads += 1
        return .bytes(count)
    }

    /// The first bytes that the client has sent, at most five: enough to recognise its protocol.
    var openingBytes: [UInt8] { (0..<min(bytesRead, opening.count)).map { opening[$0] } }

    private mutating func noteOpening() {
        for (index, byte) in zip(bytesRead..<max(bytesRead, opening.count), input) {
            opening[index] = byte
        }
    }

    mutating func write(_ bytes: UnsafeRawPointer, _ size: Int) -> Result {
        guard flight != .over else {
            output += UnsafeRawBufferPointer(start: bytes, count: size)
            return .bytes(size)
        }
        let count = hermes_send(descriptor, bytes, size)
        if count >= 0 {
            noteTail(UnsafeRawBufferPointer(start: bytes, count: count))
            return .bytes(count)
        }
        return Self.isTemporary(errno) ? .wouldBlock : .failed
    }

    private mutating func noteTail(_ bytes: UnsafeRawBufferPointer) {
        withUnsafeMutableBytes(of: &tail) { tail in
            let fresh = UnsafeRawBufferPointer(rebasing: bytes.suffix(tail.count))
            tail.copyBytes(from: UnsafeRawBufferPointer(tail)[fresh.count...])
            UnsafeMutableRawBufferPointer(rebasing: tail.suffix(fresh.count))
                .copyMemory(from: fresh)
        }
    }

    /// The explicit nonce of the broker's Finished of TLS 1.2 with AES, which is the last record
    /// that was sent; `nil` when another was.
    var finishedNonce: [UInt8]? {
        // The nonce, a message of 16 bytes and its tag.
        let header = RecordHeader(
            type: SecureChannel.ContentType.handshake,
            protected: TrafficKey.explicitNonceBytes + 16 + AEADAlgorithm.tagBytes)
        return withUnsafeBytes(of: tail) { tail in
            withUnsafeBytes(of: header) { tail.starts(with: $0) }
                ? [UInt8](tail[RecordHeader.size...].prefix(TrafficKey.explicitNonceBytes)) : nil
        }
    }

    private static func isTemporary(_ code: CInt) -> Bool {
        code == EAGAIN || code == EWOULDBLOCK || code == EINTR || code == ENOBUFS
    }
}

/// Connects OpenSSL to a ``HandshakeSocket``, see BIO_meth_new(3).
enum HandshakeBIO {
    /// Made once and never freed; `nil` when OpenSSL is out of memory.
    // Never changed after it was made, so that all threads may read it.
    nonisolated(unsafe) private static let method = makeMethod()

    /// Makes a BIO over the socket of `trace`, which must outlive it; `nil` when OpenSSL is out of
    /// memory.
    static func make(_ trace: UnsafeMutablePointer<HandshakeTrace>) -> OpaquePointer? {
        guard let bio = BIO_new(method) else { return nil }
        BIO_set_data(bio, trace)
        BIO_set_init(bio, 1)
        return bio
    }

    private static func makeMethod() -> OpaquePointer? {
        let kind = BIO_get_new_index()
        guard kind > 0, let method = BIO_meth_new(kind | BIO_TYPE_SOURCE_SINK, "handshake socket")
        else { return nil }
        BIO_meth_set_read(method) { bio, target, size in
            hermes_bio_clear_retry(bio)
            guard let trace = HandshakeBIO.trace(of: bio), let target, size > 0 else { return -1 }
            return HandshakeBIO.code(
                trace.pointee.socket.read(target, Int(size)), bio, isRead: true)
        }
        BIO_meth_set_write(method) { bio, bytes, size in
            hermes_bio_clear_retry(bio)
            guard let trace = HandshakeBIO.trace(of: bio), let bytes, size > 0 else { return -1 }
            return HandshakeBIO.code(
                trace.pointee.socket.write(bytes, Int(size)), bio, isRead: false)
        }
        BIO_meth_set_ctrl(method) { bio, command, _, _ in
            guard command == BIO_CTRL_FLUSH else { return 0 }
            HandshakeBIO.trace(of: bio)?.pointee.socket.flush()
            return 1
        }
        return method
    }

    private static func trace(of bio: OpaquePointer?) -> UnsafeMutablePointer<HandshakeTrace>? {
        BIO_get_data(bio)?.assumingMemoryBound(to: HandshakeTrace.self)
    }

    private static func code(
        _ result: HandshakeSocket.Result, _ bio: OpaquePointer?, isRead: Bool
    ) -> CInt {
        switch result {
        case .bytes(let count): return CInt(count)
        case .wouldBlock:
            hermes_bio_set_retry(bio, isRead ? 1 : 0)
            return -1
        case .ended: return 0
        case .failed: return -1
        }
    }
}
