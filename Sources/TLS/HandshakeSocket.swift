import CLinux
import COpenSSL
import Glibc

/// The socket as OpenSSL sees it during a handshake, in as few system calls as that takes.
///
/// OpenSSL asks for the header and the content of each record by themselves, and once more to learn
/// that there is nothing. Here one read takes what the socket holds. What lies behind the handshake stays
/// in ``input`` for whoever reads the connection next. The session ticket that ends our side of a
/// handshake of TLS 1.3 is kept in ``output``: no client waits for it, so that it may leave with the
/// first answer.
struct HandshakeSocket: ~Copyable {
    /// A first flight with a post-quantum key share has some 1,800 bytes.
    private static let inputCapacity = 2 * 1_024
    /// The most bytes that a handshake may send us: its certificate list is bounded apart from this.
    static let mostBytes = 128 * 1_024
    /// How many pieces OpenSSL may get: a list of certificates of 32 KiB in records of 64 bytes, header and
    /// content of each by themselves, takes half of them.
    static let mostReads = 2_048

    private enum FlightState {
        /// Our Finished has not been written.
        case open
        /// It has been, by a handshake of TLS 1.3, and leaves with the next flush.
        case ends
        /// What we write from now on waits in ``output``.
        case over
    }

    let descriptor: CInt
    private let buffer: UnsafeMutableRawPointer
    private var start = 0
    private var end = 0
    /// The last read took all that the socket had; it holds for one step.
    private var isDrained = false
    private var bytesRead = 0
    /// The first bytes that the client has sent.
    private var opening = InlineArray<5, UInt8>(repeating: 0)
    private var reads = 0
    /// The client has sent more than a handshake has, and is not read any more.
    private(set) var isOverBudget = false
    private var flight = FlightState.open
    /// What we have yet to send.
    private(set) var output: [UInt8] = []

    /// The descriptor stays its owner's.
    init(_ descriptor: CInt) {
        self.descriptor = descriptor
        buffer = .allocate(byteCount: Self.inputCapacity, alignment: 16)
    }

    deinit { buffer.deallocate() }

    /// What was read and is none of the handshake's.
    var input: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: buffer + start, count: end - start)
    }

    /// Another step begins: there may be something to read again.
    mutating func beginStep() { isDrained = false }

    /// Our Finished of TLS 1.3 has been written.
    mutating func noteFinished() { flight = .ends }

    /// OpenSSL has written its flight to the end.
    mutating func flush() { if flight == .ends { flight = .over } }

    /// Sends what was kept back, as far as the socket takes it at once: of a handshake that failed.
    mutating func sendOutput() {
        guard !output.isEmpty else { return }
        _ = hermes_send(descriptor, output, output.count)
        output = []
    }

    /// What ``read(_:_:)`` and ``write(_:_:)`` come to.
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

    /// The first bytes that the client has sent, five at most: enough to tell what it speaks.
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
        guard count < 0 else { return .bytes(count) }
        return Self.isTemporary(errno) ? .wouldBlock : .failed
    }

    private static func isTemporary(_ code: CInt) -> Bool {
        code == EAGAIN || code == EWOULDBLOCK || code == EINTR || code == ENOBUFS
    }
}

/// OpenSSL's way to a ``HandshakeSocket``, see BIO_meth_new(3).
enum HandshakeBIO {
    /// Made once; `nil` when OpenSSL is out of memory.
    // Nobody changes it once it is made.
    nonisolated(unsafe) private static let method = makeMethod()

    /// A new one over the socket of `trace`, which outlives it.
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
