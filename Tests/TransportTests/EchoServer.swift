import Structures
import SystemFiles
import Testing
import Transport

/// A handler that tests a reactor: it echoes frames, unless told otherwise.
///
/// A frame is three bytes of length, most significant first, and that many bytes. The server runs
/// on the test's thread, turn by turn, so that nothing happens between two lines of a test.
struct EchoServer: ~Copyable {
    struct Connection {
        var output = OutputQueue()
        var isBlocked = false
        /// Sends that ended at ``EchoServer/mostSentAtOnce``.
        var parts = 0
        /// Frames received, in order.
        var frames: [[UInt8]] = []
        var hasEnded = false
        var failure: SystemError?
        var isHungUp = false
        var hasProxyHeader = false
        var malformedHeader: MalformedProxyHeader?
        var flaw: WebSocketFlaw?
        /// True when frames are echoed.
        var echoes = true
        /// Most frames taken per turn; the rest stays in the reactor's input.
        var mostFrames = Int.max
    }

    let pool: BytePool
    var reactor: Reactor
    var mostSentAtOnce = Int.max
    var connections: [Handle: Connection] = [:]
    /// In the order of acceptance.
    private(set) var handles: [Handle] = []
    private(set) var refused = 0
    /// Errors of connections that could not even be closed.
    private(set) var unable: [SystemError] = []
    private(set) var staleEvents = 0
    private(set) var mailboxEvents = 0
    /// Events of newcomers, for each time that they were asked for.
    private(set) var newcomerEvents: [Int] = []
    let address: String
    var accepts = true
    /// True when those accepted are newcomers.
    var acceptsNewcomers = false
    /// True when connections begin with a PROXY header.
    var expectsProxyHeader = false
    /// What connections of WebSocket must ask for; `nil` for plain ones.
    var webSocket: WebSocketRules? {
        didSet { if let webSocket { reactor.setWebSocket(webSocket, ofListener: 0) } }
    }

    init(address: String = "127.0.0.1") throws(SystemError) {
        let pool = BytePool()
        var reactor = try Reactor(pool: pool)
        let listener = try reactor.listen(address: address, port: 0, userTimeout: .seconds(20))
        self.address = reactor.listenerAddresses[listener]
        self.pool = pool
        self.reactor = reactor
    }

    /// Waits at most `milliseconds` and handles all events; returns their number.
    @discardableResult
    mutating func turn(milliseconds: CInt = 20) throws(SystemError) -> Int {
        let count = try reactor.wait(milliseconds: milliseconds)
        for index in 0..<count {
            handle(reactor.event(index))
        }
        return count
    }

    private mutating func handle(_ event: Reactor.Event) {
        switch event {
        case .acceptable(let listener): if accepts { acceptAll(listener) }
        case .connection(let handle, let isReadable, let isWritable, let isHungUp, _):
            if isHungUp { connections[handle]?.isHungUp = true }
            if isReadable { read(handle) }
            if isWritable { flush(handle) }
        case .mailbox: mailboxEvents += 1
        case .newcomers:
            let count = reactor.askNewcomers()
            newcomerEvents.append(count)
            for index in 0..<count { handle(reactor.newcomerEvent(index)) }
        case .stale: staleEvents += 1
        }
    }

    /// Runs turns until `isDone`, for at most a few seconds; false when it stays false.
    mutating func turn(until isDone: (borrowing EchoServer) -> Bool) throws(SystemError) -> Bool {
        for _ in 0..<1_000 {
            if isDone(self) { return true }
            try turn(milliseconds: 5)
        }
        return isDone(self)
    }

    mutating func acceptAll(_ listener: Int) {
        for _ in 0..<64 {
            switch reactor.accept(listener, isNewcomer: acceptsNewcomers) {
            case .connection(let handle):
                connections[handle] = Connection()
                if expectsProxyHeader || webSocket != nil {
                    reactor.begin(
                        handle, proxyHeader: expectsProxyHeader,
                        webSocket: webSocket == nil ? nil : 0)
                }
                handles.append(handle)
            case .refused: refused += 1
            case .gone: continue
            case .unable(let error):
                unable.append(error)
                return
            case .none: return
            }
        }
    }

    mutating func read(_ handle: Handle) {
        switch reactor.receive(handle) {
        case .bytes(let bytes): consume(handle, bytes)
        case .wouldBlock: break
        case .endOfStream:
            connections[handle]?.hasEnded = true
            reactor.stopReading(handle, awaitsEnd: false)
        case .proxyHeader: connections[handle]?.hasProxyHeader = true
        case .malformedProxyHeader(let error):
            connections[handle]?.malformedHeader = error
            close(handle)
        case .brokenWebSocket(let flaw):
            connections[handle]?.flaw = flaw
            close(handle)
        case .failed(let error):
            connections[handle]?.failure = error
            close(handle)
        }
    }

    /// Handles kept input.
    mutating func readKept(_ handle: Handle) {
        let bytes = reactor.keptInput(handle)
        if !bytes.isEmpty { consume(handle, bytes) }
    }

    private mutating func consume(_ handle: Handle, _ bytes: UnsafeRawBufferPointer) {
        guard var connection = connections[handle] else { return }
        var offset = 0
        var taken = 0
        while bytes.count - offset >= 3, taken < connection.mostFrames {
            let count =
                Int(bytes[offset]) << 16 | Int(bytes[offset + 1]) << 8 | Int(bytes[offset + 2])
            guard bytes.count - offset >= 3 + count else { break }
            let frame = UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + 3 + count])
            connection.frames.append([UInt8](frame.dropFirst(3)))
            if connection.echoes { connection.output.append(frame, pool: pool) }
            offset += 3 + count
            taken += 1
        }
        reactor.keep(handle, bytes, from: offset)
        connections[handle] = connection
        flush(handle)
    }

    mutating func flush(_ handle: Handle) {
        guard var output = connections[handle]?.output else { return }
        let sent = reactor.send(handle, &output, atMost: mostSentAtOnce)
        connections[handle]?.output = output
        switch sent {
        case .all: connections[handle]?.isBlocked = false
        case .part:
            connections[handle]?.isBlocked = false
            connections[handle]?.parts += 1
            // So that an event asks for the rest.
            reactor.awaitRoom(handle)
        case .blocked: connections[handle]?.isBlocked = true
        case .failed(let error):
            connections[handle]?.failure = error
            close(handle)
        }
    }

    mutating func close(_ handle: Handle) {
        connections[handle]?.output.removeAll(in: pool)
        reactor.close(handle)
        while reactor.endedSocketCount > 0 { reactor.closeEndedSocket() }
    }

    /// Connects a peer and accepts it.
    mutating func connect(receiveBuffer: CInt? = nil) throws -> (peer: TestPeer, handle: Handle) {
        let former = handles.count
        let address = address
        let peer = try #require(TestPeer(address, receiveBuffer: receiveBuffer))
        let isAccepted = try turn { $0.handles.count > former }
        try #require(isAccepted)
        return (peer, handles[former])
    }
}

/// A frame as ``EchoServer`` reads it.
func frame(_ body: [UInt8]) -> [UInt8] {
    [UInt8(body.count >> 16 & 0xFF), UInt8(body.count >> 8 & 0xFF), UInt8(body.count & 0xFF)] + body
}
