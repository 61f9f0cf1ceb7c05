import PushServices
import HermesTesting

/// The sender's HTTP/2 side keeps its promises whatever a server sends, and does the same in
/// whatever pieces that comes.
///
/// An input is a seed for the pieces, then a program: the requests of the sender, and what the server
/// sends, from whole frames to any bytes.
enum AppleCheck {
    static func run(_ input: [UInt8], trace: ((String) -> Void)?) throws(CheckFailure) {
        var program = ByteProgram(input)
        var run = try AppleRun(seed: UInt64(program.byte()))
        while !program.isAtEnd, !run.hasFailed {
            let step = AppleStep(&program)
            trace?("\(step)")
            try run.perform(step)
        }
        try run.finish()
    }
}

/// What sender or server does.
enum AppleStep {
    case requests(payload: Int)
    case cancels(UInt32)
    case pings
    /// The sender writes what it has to write.
    case writes
    case frame(type: UInt8, flags: UInt8, stream: UInt8, payload: [UInt8])
    /// An answer with one of the statuses of HPACK's static table, and a body.
    case answers(stream: UInt8, field: UInt8, body: [UInt8])
    case raw([UInt8])

    init(_ program: inout ByteProgram) {
        switch program.byte() & 7 {
        case 0: self = .requests(payload: Int(program.byte()) * 24)
        case 1: self = .cancels(UInt32(program.byte() & 7))
        case 2: self = program.byte() & 1 == 0 ? .pings : .writes
        case 3, 4:
            self = .frame(
                type: program.byte() % 11, flags: program.byte(), stream: program.byte() & 15,
                payload: program.bytes(Int(program.byte() & 31)))
        case 5, 6:
            self = .answers(
                stream: program.byte() & 15, field: 0x88 + program.byte() % 7,
                body: program.bytes(Int(program.byte() & 63)))
        default: self = .raw(program.bytes(Int(program.byte() & 31)))
        }
    }

    /// The bytes of a server's step; empty for the sender's.
    var bytes: [UInt8] {
        switch self {
        case .requests, .cancels, .pings, .writes: []
        case .raw(let bytes): bytes
        case .frame(let type, let flags, let stream, let payload):
            Self.frame(type, flags, stream, payload)
        case .answers(let stream, let field, let body):
            Self.frame(1, 4, stream, [field]) + Self.frame(0, 1, stream, body)
        }
    }

    /// RFC 9113, section 4.1.
    private static func frame(
        _ type: UInt8, _ flags: UInt8, _ stream: UInt8, _ payload: [UInt8]
    ) -> [UInt8] {
        [0, 0, UInt8(payload.count), type, flags, 0, 0, 0, stream] + payload
    }
}

/// Two equal connections: one gets its bytes at once, the other in pieces.
struct AppleRun {
    /// Bytes that a connection may have to send for each byte that came, and for each request: a
    /// frame of nine bytes asks for an answer of at most seventeen.
    private static let mostPerByte = 4
    private static let mostPerRequest = 16_384

    private let whole: HTTP2Client
    private let inPieces: HTTP2Client
    private var pieces: SplitMix64
    private var requests: UInt32 = 0
    private var ends: Set<UInt32> = []
    private var received = 0
    private(set) var hasFailed = false

    init(seed: UInt64) throws(CheckFailure) {
        guard let whole = try? HTTP2Client(), let inPieces = try? HTTP2Client() else {
            throw CheckFailure("no memory for a connection")
        }
        (self.whole, self.inPieces) = (whole, inPieces)
        pieces = SplitMix64(seed: seed)
    }

    mutating func perform(_ step: AppleStep) throws(CheckFailure) {
        switch step {
        case .requests(let count): try request(count)
        case .cancels(let tag):
            whole.cancel(tag)
            inPieces.cancel(tag)
        case .pings:
            let (one, two) = (Self.succeeds(whole.ping), Self.succeeds(inPieces.ping))
            try CheckFailure.unless(one == two, "one of two equal connections takes a PING")
        case .writes: try write()
        case .frame, .answers, .raw: try receive(step.bytes)
        }
        try compare()
    }

    mutating func finish() throws(CheckFailure) {
        if !hasFailed { try write() }
        try compare()
    }

    private mutating func request(_ count: Int) throws(CheckFailure) {
        var fields = RequestFields()
        fields.add(":method", "POST")
        fields.add(":scheme", "https")
        fields.add(":path", "/3/device/00")
        let payload = [UInt8](repeating: 0x78, count: count)
        let tag = requests
        let one = Self.succeeds { try whole.submit(fields, payload: payload, tag: tag) }
        let two = Self.succeeds { try inPieces.submit(fields, payload: payload, tag: tag) }
        try CheckFailure.unless(one == two, "one of two equal connections takes a request")
        if one { requests += 1 }
    }

    private mutating func receive(_ bytes: [UInt8]) throws(CheckFailure) {
        guard !bytes.isEmpty else { return }
        received += bytes.count
        let one = Self.take(bytes[...], whole)
        var two = true
        var rest = bytes[...]
        while two, !rest.isEmpty {
            let piece = rest.prefix(Int.random(in: 1...8, using: &pieces))
            rest = rest.dropFirst(piece.count)
            two = Self.take(piece, inPieces)
        }
        try CheckFailure.unless(one == two, "bytes end a connection, or not, by their pieces")
        hasFailed = !one
    }

    private mutating func write() throws(CheckFailure) {
        let most = Self.mostPerByte * received + Self.mostPerRequest * Int(requests + 1)
        let (one, two) = (Self.output(whole, most), Self.output(inPieces, most))
        try CheckFailure.unless(one == two, "two equal connections write other bytes")
        try CheckFailure.unless(
            one?.count ?? 0 <= most, "\(one?.count ?? 0) bytes are written for \(received)")
        hasFailed = hasFailed || one == nil
    }

    private mutating func compare() throws(CheckFailure) {
        let (events, others) = (whole.takeEvents(), inPieces.takeEvents())
        try CheckFailure.unless(
            "\(events)" == "\(others)", "\(events) at once, and \(others) in pieces")
        for event in events {
            switch event {
            case .answered(let tag, let status, let body, let retryAfter):
                try end(tag)
                try CheckFailure.unless(
                    (200...999).contains(status), "an answer has the status \(status)")
                try CheckFailure.unless(
                    body.count <= HTTP2Client.mostBodyBytes, "\(body.count) bytes are kept")
                try CheckFailure.unless(
                    retryAfter ?? 0 <= 86_400_000, "a pause of \(retryAfter ?? 0) ms is believed")
                try plain(AppleAnswer(status: status, body: body).word)
                try plain(GoogleAnswer(status: status, body: body).word)
            case .ended(let tag, _): try end(tag)
            case .goAway(let reason): try plain(reason)
            }
        }
        try CheckFailure.unless(
            whole.openCount == Int(requests) - ends.count,
            "\(requests) requests, \(ends.count) ends, and \(whole.openCount) open")
    }

    private mutating func end(_ tag: UInt32) throws(CheckFailure) {
        try CheckFailure.unless(tag < requests, "the request \(tag) was never made")
        try CheckFailure.unless(ends.insert(tag).inserted, "the request \(tag) ends twice")
    }

    /// A word of Apple's goes to the log and to terminals.
    private func plain(_ word: String) throws(CheckFailure) {
        try CheckFailure.unless(
            word.utf8.count <= 64 && word.utf8.allSatisfy { (0x20...0x7E).contains($0) },
            "the word \(word.debugDescription) goes to the log")
    }

    // MARK: A connection

    private static func succeeds(_ body: () throws -> Void) -> Bool { (try? body()) != nil }

    private static func take(_ bytes: ArraySlice<UInt8>, _ client: HTTP2Client) -> Bool {
        bytes.withUnsafeBytes { bytes in succeeds { try client.input(bytes) } }
    }

    private static func output(_ client: HTTP2Client, _ most: Int) -> [UInt8]? {
        var bytes: [UInt8] = []
        return succeeds { try client.output(into: &bytes, most: most + 1) } ? bytes : nil
    }
}
