import Testing

@testable import TLS

/// Messages of a peer beside data after the handshake, and the answers when they end the connection.
@Suite("TLS records: alerts, handshake messages, ends")
final class PeerMessageTests {
    typealias ContentType = SecureChannel.ContentType

    private var ciphers = RecordCiphers()

    /// The receiver of records with these contents.
    private func receiver(
        _ kind: RecordKind, of records: [(UInt8, [UInt8])]
    ) -> (channel: SecureChannel, bytes: [UInt8]) {
        var (ours, peer) = kind.pair()
        let stream = records.flatMap { peer.sealed($1, type: $0, &ciphers) }
        let bytes = ours.opened(stream, &ciphers).1
        return (ours, bytes)
    }

    @Test(
        "alerts: close_notify, fatal ones, ignored ones, malformed ones", arguments: RecordKind.all)
    func alerts(kind: RecordKind) {
        let isOld = kind.version == .tls12
        let cases: [([UInt8], SecureChannel.State)] = [
            ([1, 0], .closed), ([2, 0], .closed), ([1, 90], .open), ([2, 20], .aborted),
            ([2, 90], isOld ? .aborted : .open), ([2, 42], .aborted),
            ([1, 41], isOld ? .open : .aborted), ([], .failed(.unexpectedMessage)),
            ([1], .failed(.decodeError)), ([1, 0, 0], .failed(.decodeError)),
            ([0, 255], isOld ? .failed(.illegalParameter) : .aborted),
            ([3, 20], isOld ? .failed(.illegalParameter) : .aborted),
        ]
        for (alert, state) in cases {
            let (ours, bytes) = receiver(
                kind, of: [(ContentType.alert, alert), (ContentType.applicationData, [5])])
            #expect(ours.state == state, "\(alert)")
            #expect(bytes == (state == .open ? [5] : []), "\(alert)")
        }
        let warnings = [(UInt8, [UInt8])](repeating: (ContentType.alert, [1, 90]), count: 33)
        #expect(receiver(kind, of: warnings).channel.state == .failed(.unexpectedMessage))
    }

    /// The size of the records that end a channel, and the state of the peer that has opened them.
    private func end(
        _ kind: RecordKind, after records: [(UInt8, [UInt8])]
    ) -> (count: Int, peer: SecureChannel.State) {
        var (ours, _) = receiver(kind, of: records)
        var (_, peer) = kind.pair()
        let end = ours.sealedEnd(&ciphers)
        #expect(peer.opened(end, &ciphers).0.consumed == end.count)
        return (end.count, peer.state)
    }

    @Test("close_notify is answered, a fatal alert is not", arguments: RecordKind.all)
    func ends(kind: RecordKind) {
        let data = (ContentType.applicationData, [UInt8(1)])
        #expect(end(kind, after: [data]).peer == .closed)
        #expect(end(kind, after: [data, (ContentType.alert, [1, 0])]).peer == .closed)
        #expect(end(kind, after: [(ContentType.alert, [1])]).peer == .aborted)
        #expect(end(kind, after: [data, (ContentType.alert, [2, 80])]).count == 0)
    }

    static let refusedMessages: [([[UInt8]], SecureChannel.Alert)] = [
        ([[24, 0, 0, 1, 2]], .illegalParameter), ([[24, 0, 0, 1, 255]], .illegalParameter),
        ([[24, 0, 0, 0]], .decodeError), ([[24, 0], [0, 0]], .decodeError),
        ([[24, 0, 0, 2]], .decodeError), ([[24, 0, 0, 2, 0, 0]], .decodeError),
        ([[24, 0, 1]], .decodeError), ([[24, 1]], .decodeError),
        ([[]], .unexpectedMessage), ([[24, 0], []], .unexpectedMessage),
        ([[24, 0, 0, 1, 0, 0]], .unexpectedMessage),
        ([[24, 0, 0, 1, 0, 24, 0, 0, 1, 0]], .unexpectedMessage),
        ([[1]], .unexpectedMessage), ([[4, 0, 0, 1, 0]], .unexpectedMessage),
        ([[11, 0, 0, 1, 0]], .unexpectedMessage),
    ]

    @Test(
        "of handshake messages TLS 1.3 takes only KeyUpdate, also in pieces",
        arguments: RecordKind.tls13)
    func handshakeMessages(kind: RecordKind) {
        for (pieces, alert) in Self.refusedMessages {
            let (ours, _) = receiver(kind, of: pieces.map { (ContentType.handshake, $0) })
            #expect(ours.state == .failed(alert), "\(pieces)")
            #expect(!ours.owesKeyUpdate)
        }
        let (ours, _) = receiver(
            kind, of: [24, 0, 0, 1, 1].map { (ContentType.handshake, [$0]) })
        #expect(ours.state == .open && ours.owesKeyUpdate)
    }

    @Test("nothing may stand between the pieces of a KeyUpdate", arguments: RecordKind.tls13)
    func betweenPieces(kind: RecordKind) {
        let between: [(UInt8, [UInt8])] = [
            (ContentType.applicationData, [1]), (ContentType.applicationData, []),
            (ContentType.alert, [1, 0]), (ContentType.alert, [1, 90]),
            (ContentType.alert, [2, 80]), (ContentType.alert, []), (20, [1]),
        ]
        for record in between {
            for count in 1...4 {
                let piece = [UInt8]([24, 0, 0, 1].prefix(count))
                let (ours, bytes) = receiver(kind, of: [(ContentType.handshake, piece), record])
                #expect(ours.state == .failed(.unexpectedMessage) && bytes == [], "\(record)")
            }
        }
    }

    @Test(
        "TLS 1.2 refuses a new handshake politely, and any other message",
        arguments: RecordKind.tls12)
    func handshakeMessages12(kind: RecordKind) {
        for type in UInt8.min...UInt8.max {
            let (ours, _) = receiver(kind, of: [(ContentType.handshake, [type, 0, 0, 1, 0])])
            #expect(
                ours.state == .failed(type == 1 ? .noRenegotiation : .unexpectedMessage), "\(type)")
        }
        let (ours, _) = receiver(kind, of: [(ContentType.handshake, [])])
        #expect(ours.state == .failed(.unexpectedMessage))
        // The refusal is a warning, and close_notify comes behind it.
        #expect(end(kind, after: [(ContentType.handshake, [1])]).peer == .closed)
        #expect(end(kind, after: [(ContentType.handshake, [2])]).peer == .aborted)
    }

    @Test("explicit nonces count on from that of record 0", arguments: RecordKind.tls12)
    func explicitNonces(kind: RecordKind) {
        let digest = kind.digest
        let isAES = kind.algorithm != .chaCha20Poly1305
        let key = TrafficKey(
            key: [UInt8](repeating: 1, count: kind.algorithm.keyBytes)[...],
            iv: [UInt8](repeating: 1, count: isAES ? 4 : 12)[...],
            firstNonce: isAES ? [255, 255, 255, 255, 255, 255, 255, 254] : [], sequence: 1)
        var ours = SecureChannel(kind.version, kind.algorithm, digest, inbound: key, outbound: key)
        var peer = ours
        var nonces: [[UInt8]] = []
        for byte in UInt8(0)..<4 {
            let record = ours.sealed([byte], &ciphers)
            nonces.append([UInt8](record[5..<13]))
            #expect(peer.opened(record, &ciphers).1 == [byte])
        }
        guard isAES else { return }
        #expect(nonces[0] == [UInt8](repeating: 255, count: 8))
        for (count, nonce) in nonces[1...].enumerated() {
            #expect(nonce == [0, 0, 0, 0, 0, 0, 0, UInt8(count)])
        }
    }
}
