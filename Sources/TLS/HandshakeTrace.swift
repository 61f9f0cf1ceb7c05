import COpenSSL

/// Notes that OpenSSL's callbacks take during a handshake. The handshake owns it, at an address
/// that does not change.
///
/// OpenSSL passes the traffic secrets of TLS 1.3 to its key log callback as text lines (format
/// SSLKEYLOGFILE): a label, the client's 32 random bytes and the secret, in hexadecimal.
struct HandshakeTrace: ~Copyable {
    var clientSecret = InlineArray<48, UInt8>(repeating: 0)
    var serverSecret = InlineArray<48, UInt8>(repeating: 0)
    var clientSecretCount = 0
    var serverSecretCount = 0
    /// True when the broker's Finished has been sent. Later records are encrypted with the traffic
    /// key.
    private var hasSentFinished = false
    /// Record headers sent behind the broker's Finished; all of them carry session tickets.
    private var recordsSent: UInt64 = 0
    private var ticketsSent: UInt64 = 0
    /// True when the broker has sent a Finished or a message that needs its private key.
    private(set) var hasSigned = false
    var socket: HandshakeSocket
    let context: Unmanaged<TLSContext>

    init(context: TLSContext, descriptor: CInt) {
        self.context = Unmanaged.passUnretained(context)
        socket = HandshakeSocket(descriptor)
    }

    /// The trace of a handshake. OpenSSL reserves index 0 for the application.
    static func of(_ ssl: OpaquePointer?) -> UnsafeMutablePointer<HandshakeTrace>? {
        SSL_get_ex_data(ssl, 0)?.assumingMemoryBound(to: HandshakeTrace.self)
    }

    /// Takes the client's or the server's traffic secret from one line of the key log.
    mutating func note(keyLogLine line: UnsafePointer<CChar>) {
        let isClient = strncmp(line, "CLIENT_TRAFFIC_SECRET_0 ", 24) == 0
        guard isClient || strncmp(line, "SERVER_TRAFFIC_SECRET_0 ", 24) == 0 else { return }
        // Behind the label: 32 random bytes in hexadecimal and a blank.
        var place = 24 + 64 + 1
        var secret = InlineArray<48, UInt8>(repeating: 0)
        var count = 0
        while count < 48, let high = Self.digit(line[place]),
            let low = Self.digit(line[place + 1])
        {
            secret[count] = high << 4 | low
            count += 1
            place += 2
        }
        if isClient {
            clientSecret = secret
            clientSecretCount = count
        } else {
            serverSecret = secret
            serverSecretCount = count
        }
    }

    /// Counts records. OpenSSL reports each header before it is sent, and each message after it was
    /// sent.
    mutating func note(
        sent contentType: CInt, _ bytes: UnsafeRawPointer?, _ count: Int, isTLS13: Bool
    ) {
        switch contentType {
        case SSL3_RT_HEADER:
            if hasSentFinished { recordsSent += 1 }
        case CInt(SecureChannel.ContentType.handshake):
            guard count > 0, let type = bytes?.load(as: UInt8.self) else { return }
            switch CInt(type) {
            case SSL3_MT_FINISHED:
                hasSentFinished = true
                hasSigned = true
                if isTLS13 { socket.noteFinished() }
            case SSL3_MT_SERVER_KEY_EXCHANGE, SSL3_MT_CERTIFICATE_VERIFY: hasSigned = true
            case SSL3_MT_NEWSESSION_TICKET: if hasSentFinished { ticketsSent += 1 }
            default: break
            }
        default: break
        }
    }

    /// The number of records that OpenSSL has sealed behind the broker's Finished; the broker's own
    /// records continue from it. All of them carry tickets of TLS 1.3.
    ///
    /// Each ticket takes at least one record. With fewer records than tickets the count cannot be
    /// trusted, and using a sequence number twice would reveal both records: `nil`.
    var sealedRecords: UInt64? {
        hasSentFinished && recordsSent >= ticketsSent ? recordsSent : nil
    }

    /// Overwrites the secrets.
    mutating func erase() {
        withUnsafeMutableBytes(of: &clientSecret) { OPENSSL_cleanse($0.baseAddress, $0.count) }
        withUnsafeMutableBytes(of: &serverSecret) { OPENSSL_cleanse($0.baseAddress, $0.count) }
    }

    private static func digit(_ character: CChar) -> UInt8? {
        switch UInt8(bitPattern: character) {
        case let digit where digit >= 0x30 && digit <= 0x39: digit - 0x30
        case let digit where digit >= 0x61 && digit <= 0x66: digit - 0x61 + 10
        case let digit where digit >= 0x41 && digit <= 0x46: digit - 0x41 + 10
        default: nil
        }
    }
}
