import CBench
import CLinux
import COpenSSL
import Glibc
import MQTTCodec
import Structures
import SystemFiles
import Transport

/// The client side of many connections over one epoll, the counterpart of ``Reactor``.
///
/// Unlike a broker it opens connections, has no bounds against slow peers, and reports a lost
/// connection to its scenario. Output is collected per connection and sent at the end of a turn.
struct ClientSockets: ~Copyable {
    struct Socket: BitwiseCopyable {
        var descriptor: CInt
        var generation: UInt32
        /// Input that did not make a whole packet yet, in a pool buffer.
        var input: UnsafeMutableRawPointer?
        var inputCount = 0
        var inputCapacity = 0
        var output = OutputQueue()
        var awaitsWritable = false
        var isDirty = false
        /// Closes once its output has been sent.
        var isFinishing = false
        /// Its TLS connection; `nil` for plain TCP.
        var ssl: OpaquePointer?
    }

    private static var eventCapacity: Int { 1_024 }
    private static var readBytes: Int { 256 * 1_024 }
    private static var segmentCapacity: Int { 64 }
    /// Of one TLS record.
    private static var recordBytes: Int { 16_384 }
    /// No packet of a scenario is longer; a longer one means that the stream is corrupt.
    private static var largestPacket: Int { 16 * 1_024 * 1_024 }

    /// The settings of TLS; `nil` for plain TCP.
    private let tls: ClientTLS?
    private let poller: OwnedDescriptor
    private let pool = BytePool()
    private var sockets = Slab<Socket>()
    private var dirty = GrowableBuffer<UInt32>()
    /// The former list, while it is worked through.
    private var flushing = GrowableBuffer<UInt32>()
    private var generation: UInt32 = 0
    private let events: UnsafeMutablePointer<epoll_event>
    private let readBuffer: UnsafeMutableRawPointer
    private let segments: UnsafeMutablePointer<OutputQueue.Segment>
    /// Time of the latest wait or receive, in nanoseconds.
    private(set) var now = Clock.nanoseconds()

    init(tls: ClientTLS? = nil) throws(BenchFailure) {
        self.tls = tls
        let descriptor = epoll_create1(CInt(EPOLL_CLOEXEC))
        guard descriptor >= 0 else {
            throw BenchFailure("epoll_create1: \(String(cString: strerror(errno)))")
        }
        poller = OwnedDescriptor(adopting: descriptor)
        events = .allocate(capacity: Self.eventCapacity)
        readBuffer = .allocate(byteCount: Self.readBytes, alignment: 64)
        segments = .allocate(capacity: Self.segmentCapacity)
        segments.initialize(repeating: OutputQueue.Segment(), count: Self.segmentCapacity)
    }

    deinit {
        for index in 0..<sockets.endIndex where sockets[index].descriptor >= 0 {
            if let ssl = sockets[index].ssl { tls?.close(ssl) }
            _ = Glibc.close(sockets[index].descriptor)
        }
        events.deallocate()
        readBuffer.deallocate()
        segments.deallocate()
        pool.destroy()
    }

    /// Connections that are open or being made.
    var count: Int { sockets.count }

    // MARK: Opening and closing

    /// Begins a connection and returns its number; numbers count from 0 and are reused once closed.
    ///
    /// Output may be appended at once: it leaves when the connection is made.
    mutating func open(_ address: BrokerAddress) throws(BenchFailure) -> UInt32 {
        let descriptor = bench_connect(address.address, address.port)
        guard descriptor >= 0 else {
            throw BenchFailure(
                "connection \(sockets.count + 1) to \(address): \(String(cString: strerror(errno)))"
                    + (errno == EMFILE ? "; raise the descriptor limit (ulimit -n)." : "."))
        }
        generation &+= 1
        var socket = Socket(descriptor: descriptor, generation: generation)
        socket.ssl = tls?.open(descriptor)
        let client = sockets.insert(socket)
        guard interest(EPOLL_CTL_ADD, client, EPOLLIN.rawValue) else {
            throw BenchFailure("epoll_ctl: \(String(cString: strerror(errno)))")
        }
        return client
    }

    mutating func close(_ client: UInt32) {
        guard sockets[client].descriptor >= 0 else { return }
        if let ssl = sockets[client].ssl { tls?.close(ssl) }
        sockets[client].ssl = nil
        _ = Glibc.close(sockets[client].descriptor)
        sockets[client].descriptor = -1
        sockets[client].generation = 0
        sockets[client].output.removeAll(in: pool)
        keep(client, UnsafeRawBufferPointer(start: nil, count: 0), from: 0)
        sockets.remove(client)
    }

    /// Sends DISCONNECT and closes after it.
    mutating func disconnect(_ client: UInt32) {
        append(client, 2).storeBytes(of: 0x00E0, as: UInt16.self)
        sockets[client].isFinishing = true
    }

    /// ``disconnect(_:)`` for every connection.
    mutating func disconnectAll() {
        for client in 0..<sockets.endIndex where sockets[client].descriptor >= 0 {
            disconnect(client)
        }
    }

    // MARK: Turns

    /// Waits at most `nanoseconds`, hands everything that arrived to the handler, lets it end the
    /// turn and sends what it appended.
    mutating func turn<Handler: PacketHandler & ~Copyable>(
        atMost nanoseconds: Int64, _ handler: inout Handler
    ) throws(BenchFailure) {
        let count = Int(
            bench_wait(poller.rawValue, events, CInt(Self.eventCapacity), nanoseconds))
        guard count >= 0 || errno == EINTR else {
            throw BenchFailure("epoll_wait: \(String(cString: strerror(errno)))")
        }
        now = Clock.nanoseconds()
        for index in 0..<max(0, count) {
            let name = Handle(packed: events[index].data.u64)
            guard sockets[name.index].generation == name.generation else { continue }
            if events[index].events & EPOLLOUT.rawValue != 0 { markDirty(name.index) }
            if events[index].events & ~EPOLLOUT.rawValue != 0 {
                try receive(name.index, &handler)
            }
        }
        try handler.endTurn(&self)
        try flush(&handler)
    }

    /// Room for `size` bytes of output, which the caller fills at once.
    mutating func append(_ client: UInt32, _ size: Int) -> UnsafeMutableRawPointer {
        markDirty(client)
        return sockets[client].output.append(size, pool: pool)
    }

    mutating func append(_ client: UInt32, _ bytes: [UInt8]) {
        bytes.withUnsafeBytes { source in
            markDirty(client)
            sockets[client].output.append(source, pool: pool)
        }
    }

    /// PUBACK, PUBREC, PUBREL or PUBCOMP.
    mutating func acknowledge(
        _ client: UInt32, _ type: PacketType, _ identifier: PacketIdentifier
    ) {
        append(client, 4).storeBytes(
            of: PacketEncoder.fourBytes(type, identifier).littleEndian, as: UInt32.self)
    }

    // MARK: Private

    private mutating func markDirty(_ client: UInt32) {
        guard !sockets[client].isDirty else { return }
        sockets[client].isDirty = true
        dirty.append(client)
    }

    private mutating func receive<Handler: PacketHandler & ~Copyable>(
        _ client: UInt32, _ handler: inout Handler
    ) throws(BenchFailure) {
        let kept = sockets[client].inputCount
        var base = readBuffer
        var capacity = Self.readBytes
        if let input = sockets[client].input {
            if kept * 2 < Self.readBytes {
                readBuffer.copyMemory(from: input, byteCount: kept)
            } else {
                base = growInput(client, input)
                capacity = sockets[client].inputCapacity
            }
        }
        let received: Int
        switch receive(client, base + kept, capacity - kept) {
        case .done(let count): received = count
        case .wantsRead: return
        case .wantsWrite:
            awaitWritable(client, true)
            return
        case .failed(let reason):
            close(client)
            try handler.closed(client, reason, &self)
            return
        }
        now = Clock.nanoseconds()
        let bytes = UnsafeRawBufferPointer(start: base, count: kept + received)
        let generation = sockets[client].generation
        let consumed = try deliver(client, bytes, &handler)
        guard sockets[client].generation == generation else { return }
        keep(client, bytes, from: consumed)
        // Data that OpenSSL has decrypted causes no event.
        if let ssl = sockets[client].ssl, SSL_has_pending(ssl) == 1 {
            try receive(client, &handler)
        }
    }

    private mutating func receive(
        _ client: UInt32, _ target: UnsafeMutableRawPointer, _ room: Int
    ) -> ClientTLS.Step {
        if let ssl = sockets[client].ssl, let tls {
            let step = tls.read(ssl, target, room)
            // Reading continues the handshake; at its end output can be sent.
            if !sockets[client].output.isEmpty, SSL_is_init_finished(ssl) == 1 {
                markDirty(client)
            }
            return step
        }
        let received = recv(sockets[client].descriptor, target, room, 0)
        if received > 0 { return .done(received) }
        if received < 0, errno == EAGAIN || errno == EINTR { return .wantsRead }
        return .failed(
            received == 0 ? "closed by the broker" : String(cString: strerror(errno)))
    }

    /// Hands over all complete packets; returns the bytes that they took.
    private mutating func deliver<Handler: PacketHandler & ~Copyable>(
        _ client: UInt32, _ bytes: UnsafeRawBufferPointer, _ handler: inout Handler
    ) throws(BenchFailure) -> Int {
        let generation = sockets[client].generation
        var offset = 0
        while offset < bytes.count {
            let framing: PacketDecoder.Framing
            do throws(MalformedPacket) {
                framing = try PacketDecoder.frame(
                    bytes.bytes, at: offset, maximumSize: Self.largestPacket)
            } catch {
                throw BenchFailure(
                    "the broker sent a malformed packet to client \(client): \(error)")
            }
            guard case .frame(let frame) = framing else { break }
            try handler.receive(frame, bytes, client, &self)
            guard sockets[client].generation == generation else { return bytes.count }
            offset = frame.packet.end
        }
        return offset
    }

    private mutating func keep(
        _ client: UInt32, _ bytes: UnsafeRawBufferPointer, from consumed: Int
    ) {
        let remaining = bytes.count - consumed
        let old = sockets[client].input
        let oldCapacity = sockets[client].inputCapacity
        guard remaining > 0, let source = bytes.baseAddress else {
            if let old { pool.deallocate(old, count: oldCapacity) }
            sockets[client].input = nil
            sockets[client].inputCount = 0
            sockets[client].inputCapacity = 0
            return
        }
        sockets[client].inputCount = remaining
        if let old, remaining <= oldCapacity {
            // The source may be this very buffer.
            memmove(old, source + consumed, remaining)
            return
        }
        let capacity = BytePool.capacity(for: remaining)
        let buffer = pool.allocate(capacity)
        buffer.copyMemory(from: source + consumed, byteCount: remaining)
        if let old { pool.deallocate(old, count: oldCapacity) }
        sockets[client].input = buffer
        sockets[client].inputCapacity = capacity
    }

    /// Makes room to read on behind input that has outgrown the shared buffer.
    private mutating func growInput(
        _ client: UInt32, _ input: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        let count = sockets[client].inputCount
        guard count == sockets[client].inputCapacity else { return input }
        let capacity = BytePool.capacity(for: count * 2)
        let larger = pool.allocate(capacity)
        larger.copyMemory(from: input, byteCount: count)
        pool.deallocate(input, count: count)
        sockets[client].input = larger
        sockets[client].inputCapacity = capacity
        return larger
    }

    private mutating func flush<Handler: PacketHandler & ~Copyable>(
        _ handler: inout Handler
    ) throws(BenchFailure) {
        // Output that a handler appends for a lost connection is sent in the next turn.
        swap(&dirty, &flushing)
        for index in 0..<flushing.count {
            let client = flushing[index]
            sockets[client].isDirty = false
            guard sockets[client].descriptor >= 0 else { continue }
            if let failure = send(client) {
                close(client)
                try handler.closed(client, failure, &self)
            } else if sockets[client].isFinishing, sockets[client].output.isEmpty {
                close(client)
            }
        }
        flushing.removeAll()
    }

    /// Sends with TLS, one record at a time; returns an error.
    private mutating func send(_ client: UInt32, _ ssl: OpaquePointer, _ tls: ClientTLS) -> String?
    {
        while !sockets[client].output.isEmpty {
            let count = sockets[client].output.fill(segments, capacity: Self.segmentCapacity)
            var size = 0
            for segment in 0..<count {
                guard let base = segments[segment].base else { continue }
                let part = min(segments[segment].count, Self.recordBytes - size)
                (readBuffer + size).copyMemory(from: base, byteCount: part)
                size += part
            }
            switch tls.write(ssl, readBuffer, size) {
            case .done(let sent): sockets[client].output.consume(sent, pool: pool)
            case .wantsRead:
                awaitWritable(client, false)
                return nil
            case .wantsWrite:
                awaitWritable(client, true)
                return nil
            case .failed(let reason): return reason
            }
        }
        awaitWritable(client, false)
        return nil
    }

    /// Sends as much as the socket takes; returns an error.
    private mutating func send(_ client: UInt32) -> String? {
        if let ssl = sockets[client].ssl, let tls { return send(client, ssl, tls) }
        let descriptor = sockets[client].descriptor
        while !sockets[client].output.isEmpty {
            let count = sockets[client].output.fill(segments, capacity: Self.segmentCapacity)
            let sent =
                count == 1
                ? hermes_send(descriptor, segments[0].base, segments[0].count)
                : hermes_send_vector(descriptor, segments, count)
            if sent < 0 {
                switch errno {
                case EINTR: continue
                case EAGAIN, ENOBUFS:
                    awaitWritable(client, true)
                    return nil
                case let code: return String(cString: strerror(code))
                }
            }
            sockets[client].output.consume(sent, pool: pool)
        }
        awaitWritable(client, false)
        return nil
    }

    private mutating func awaitWritable(_ client: UInt32, _ awaits: Bool) {
        guard sockets[client].awaitsWritable != awaits else { return }
        sockets[client].awaitsWritable = awaits
        _ = interest(EPOLL_CTL_MOD, client, EPOLLIN.rawValue | (awaits ? EPOLLOUT.rawValue : 0))
    }

    private func interest(_ operation: CInt, _ client: UInt32, _ flags: UInt32) -> Bool {
        var event = epoll_event()
        event.events = flags
        event.data.u64 = Handle(index: client, generation: sockets[client].generation).packed
        return epoll_ctl(poller.rawValue, operation, sockets[client].descriptor, &event) == 0
    }
}
