import HermesTesting
import Testing

@testable import TLS

/// Violations by a peer. The peer is our own record layer with exchanged keys, which seals any
/// content.
@Suite("TLS records: rules")
final class RecordRuleTests {
    typealias ContentType = SecureChannel.ContentType

    struct Kind: Sendable, CustomTestStringConvertible {
        var version: SecureChannel.Version
        var algorithm: AEADAlgorithm
        var testDescription: String { "\(version) \(algorithm)" }
    }

    static let kinds = [SecureChannel.Version.tls12, .tls13].flatMap { version in
        AEADAlgorithm.allCases.map { Kind(version: version, algorithm: $0) }
    }
    static let kinds13 = kinds.filter { $0.version == .tls13 }

    private var ciphers = RecordCiphers()

    private static func pair(
        _ kind: Kind, largestFragment: Int = SecureChannel.largestPlaintext
    ) -> (SecureChannel, SecureChannel) {
        let digest = kind.algorithm == .aes256GCM ? KeyDigest.sha384 : .sha256
        let keys = [UInt8(1), 2].map { seed in
            kind.version == .tls13
                ? TrafficKey(
                    secret: [UInt8](repeating: seed, count: digest.byteCount), kind.algorithm,
                    digest, sequence: 0)
                : TrafficKey(
                    key: [UInt8](repeating: seed, count: kind.algorithm.keyBytes)[...],
                    iv: [UInt8](
                        repeating: seed, count: kind.algorithm == .chaCha20Poly1305 ? 12 : 4)[...],
                    sequence: 1)
        }
        return (
            SecureChannel(
                kind.version, kind.algorithm, digest, inbound: keys[0], outbound: keys[1],
                largestFragment: largestFragment),
            SecureChannel(
                kind.version, kind.algorithm, digest, inbound: keys[1], outbound: keys[0])
        )
    }

    private func keyUpdate(_ peer: inout SecureChannel) throws -> [UInt8] {
        var record = [UInt8](repeating: 0, count: 64)
        let size = try record.withUnsafeMutableBytes {
            peer.sealKeyUpdate(in: try #require($0.baseAddress), &ciphers)
        }
        return [UInt8](record[..<size])
    }

    @Test("any changed bit, any missing record, any repeat is found", arguments: kinds)
    func authenticity(kind: Kind) {
        var (_, peer) = Self.pair(kind)
        let first = peer.sealed([1, 2, 3, 4], &ciphers)
        let second = peer.sealed([5], &ciphers)
        for bit in 0..<first.count * 8 {
            var changed = first
            changed[bit / 8] ^= 1 << (bit % 8)
            var (ours, _) = Self.pair(kind)
            let (opened, bytes) = ours.opened(changed + second, &ciphers)
            #expect(bytes.isEmpty && opened.produced == 0, "bit \(bit)")
            // A longer length waits for more bytes; anything else must fail.
            if opened.consumed > 0 { #expect(ours.state == .failed, "bit \(bit)") }
        }
        for stream in [second, first + first, first + second + first] {
            var (ours, _) = Self.pair(kind)
            _ = ours.opened(stream, &ciphers)
            #expect(ours.state == .failed && ours.alert == .badRecordMAC)
        }
        var (ours, _) = Self.pair(kind)
        #expect(ours.opened(first + second, &ciphers).1 == [1, 2, 3, 4, 5])
        #expect(ours.state == .open)
    }

    @Test("a record may carry 16,384 bytes and not one more", arguments: kinds)
    func lengths(kind: Kind) {
        var (ours, peer) = Self.pair(kind)
        let most = [UInt8](repeating: 9, count: SecureChannel.largestPlaintext)
        #expect(ours.opened(peer.sealed(most, &ciphers), &ciphers).1 == most)
        #expect(ours.opened(peer.sealed(most + [9], &ciphers), &ciphers).1 == [])
        #expect(ours.state == .failed && ours.alert == .recordOverflow)
    }

    @Test("a length beyond TLS's limit is rejected before its bytes arrive", arguments: kinds)
    func overlongHeader(kind: Kind) {
        let allowed = 16_384 + (kind.version == .tls13 ? 256 : 2_048)
        for (length, isRefused) in [(allowed, false), (allowed + 1, true), (65_535, true)] {
            var (ours, _) = Self.pair(kind)
            let header = [23, 3, 3, UInt8(length >> 8), UInt8(length & 0xFF)]
            #expect(ours.opened(header, &ciphers).0.consumed == 0)
            #expect((ours.state == .failed) == isRefused, "\(length)")
            if isRefused { #expect(ours.alert == .recordOverflow) }
        }
    }

    @Test("a record too short for its tag is no record", arguments: kinds)
    func shortRecords(kind: Kind) {
        for length in 0..<(kind.version == .tls13 ? 17 : 16) {
            var (ours, _) = Self.pair(kind)
            let record = [23, 3, 3, 0, UInt8(length)] + [UInt8](repeating: 0, count: length)
            #expect(ours.opened(record, &ciphers).1 == [])
            #expect(ours.state == .failed && ours.alert == .badRecordMAC, "\(length)")
        }
    }

    @Test("records without data are taken, but not for ever", arguments: kinds)
    func emptyRecords(kind: Kind) {
        var (ours, peer) = Self.pair(kind)
        for _ in 0..<3 {
            for _ in 0..<32 { _ = ours.opened(peer.sealed([], &ciphers), &ciphers) }
            #expect(ours.opened(peer.sealed([1], &ciphers), &ciphers).1 == [1])
        }
        for _ in 0..<33 { _ = ours.opened(peer.sealed([], &ciphers), &ciphers) }
        #expect(ours.state == .failed && ours.alert == .unexpectedMessage)
    }

    @Test("padding is taken off, and counts towards the length", arguments: kinds13)
    func padding(kind: Kind) {
        var (ours, peer) = Self.pair(kind)
        // The type appended by sealing is the last zero; the true one is before the zeros.
        let padded: [UInt8] = [1, 2, ContentType.applicationData, 0, 0, 0]
        #expect(ours.opened(peer.sealed(padded, type: 0, &ciphers), &ciphers).1 == [1, 2])
        let zeros = [UInt8](repeating: 0, count: 20)
        #expect(ours.opened(peer.sealed(zeros, type: 0, &ciphers), &ciphers).1 == [])
        #expect(ours.state == .failed && ours.alert == .unexpectedMessage)
        (ours, peer) = Self.pair(kind)
        let long: [UInt8] =
            [1, ContentType.applicationData] + [UInt8](repeating: 0, count: 16_383)
        #expect(ours.opened(peer.sealed(long, type: 0, &ciphers), &ciphers).1 == [])
        #expect(ours.state == .failed && ours.alert == .recordOverflow)
    }

    @Test("a client that wants small records may send no larger ones", arguments: kinds)
    func fragments(kind: Kind) {
        var (ours, peer) = Self.pair(kind, largestFragment: 512)
        let most = [UInt8](repeating: 1, count: 512)
        #expect(ours.opened(peer.sealed(most, &ciphers), &ciphers).1 == most)
        #expect(ours.opened(peer.sealed(most + [1], &ciphers), &ciphers).1 == [])
        #expect(ours.state == .failed && ours.alert == .recordOverflow)
    }

    @Test("without protection nothing is taken", arguments: kinds)
    func plaintext(kind: Kind) {
        for type in UInt8.min...UInt8.max where type != ContentType.applicationData {
            var (ours, _) = Self.pair(kind)
            let record = [type, 3, 3, 0, 40] + [UInt8](repeating: 0, count: 40)
            #expect(ours.opened(record, &ciphers).1 == [])
            #expect(ours.state == .failed)
            #expect(
                ours.alert == (kind.version == .tls13 ? .unexpectedMessage : .badRecordMAC))
        }
    }

    @Test("types that have no place behind a handshake end the connection", arguments: kinds)
    func types(kind: Kind) {
        for type in UInt8.min...UInt8.max
        where ![0, ContentType.alert, ContentType.handshake, ContentType.applicationData]
            .contains(type)
        {
            var (ours, peer) = Self.pair(kind)
            #expect(ours.opened(peer.sealed([1], type: type, &ciphers), &ciphers).1 == [])
            #expect(ours.state == .failed && ours.alert == .unexpectedMessage, "\(type)")
        }
    }

    @Test("alerts: close_notify, fatal ones, ignored ones, malformed ones", arguments: kinds)
    func alerts(kind: Kind) {
        let isOld = kind.version == .tls12
        let cases: [([UInt8], SecureChannel.State)] = [
            ([1, 0], .closed), ([2, 0], .closed), ([1, 90], .open), ([2, 20], .failed),
            ([2, 42], .failed), ([1, 41], isOld ? .open : .failed), ([], .failed), ([1], .failed),
            ([1, 0, 0], .failed), ([0, 255], .failed),
        ]
        for (alert, state) in cases {
            var (ours, peer) = Self.pair(kind)
            let stream =
                peer.sealed(alert, type: ContentType.alert, &ciphers)
                + peer.sealed([5], &ciphers)
            let bytes = ours.opened(stream, &ciphers).1
            #expect(ours.state == state, "\(alert)")
            #expect(bytes == (state == .open ? [5] : []), "\(alert)")
        }
        var (ours, peer) = Self.pair(kind)
        for _ in 0..<33 {
            _ = ours.opened(peer.sealed([1, 90], type: ContentType.alert, &ciphers), &ciphers)
        }
        #expect(ours.state == .failed)
    }

    @Test("of handshake messages only KeyUpdate is taken, also in pieces", arguments: kinds13)
    func handshakeMessages(kind: Kind) throws {
        let refused: [[UInt8]] = [
            [], [24, 0, 0, 1, 2], [24, 0, 0, 0, 0], [24, 0, 0, 1, 0, 0],
            [24, 0, 0, 1, 0, 24, 0, 0, 1, 0], [1, 0, 0, 1, 0], [4, 0, 0, 1, 0], [11, 0, 0, 1, 0],
            [24, 0, 1, 1, 0], [24, 1, 0, 1, 0],
        ]
        for message in refused {
            var (ours, peer) = Self.pair(kind)
            _ = ours.opened(peer.sealed(message, type: ContentType.handshake, &ciphers), &ciphers)
            #expect(ours.state == .failed && ours.alert == .unexpectedMessage, "\(message)")
        }
        var (ours, peer) = Self.pair(kind)
        for piece: [UInt8] in [[24, 0], [0, 1]] {
            _ = ours.opened(peer.sealed(piece, type: ContentType.handshake, &ciphers), &ciphers)
            #expect(ours.state == .open)
        }
        // No record may come between its pieces.
        _ = ours.opened(peer.sealed([1], &ciphers), &ciphers)
        #expect(ours.state == .failed && ours.alert == .unexpectedMessage)
    }

    @Test("keys change as often as a peer may want, and not more", arguments: kinds13)
    func keyUpdates(kind: Kind) throws {
        let clock = TestClock(1_000)
        ciphers = RecordCiphers { clock.seconds }
        var (ours, peer) = Self.pair(kind)
        for round in 0..<32 {
            #expect(ours.opened(try keyUpdate(&peer), &ciphers).1 == [])
            let bytes = ours.opened(peer.sealed([UInt8(round)], &ciphers), &ciphers).1
            #expect(bytes == [UInt8(round)])
        }
        // Data between them makes a difference only if there is much of it.
        for _ in 0..<1_024 { _ = ours.opened(peer.sealed([1], &ciphers), &ciphers) }
        _ = ours.opened(try keyUpdate(&peer), &ciphers)
        #expect(ours.opened(peer.sealed([1], &ciphers), &ciphers).1 == [1])
        clock.seconds += 9
        _ = ours.opened(try keyUpdate(&peer), &ciphers)
        #expect(ours.state == .failed && ours.alert == .unexpectedMessage)
    }

    @Test("a quiet connection may change its keys for ever, at its pace", arguments: kinds13)
    func slowKeyUpdates(kind: Kind) throws {
        let clock = TestClock(.max - 500)
        ciphers = RecordCiphers { clock.seconds }
        var (ours, peer) = Self.pair(kind)
        // Includes the wrap of the clock.
        for _ in 0..<200 {
            clock.seconds &+= 10
            _ = ours.opened(try keyUpdate(&peer), &ciphers)
            #expect(ours.opened(peer.sealed([1], &ciphers), &ciphers).1 == [1])
        }
        // The saved budget is capped at one.
        clock.seconds &+= 1_000_000
        for _ in 0..<32 { _ = ours.opened(try keyUpdate(&peer), &ciphers) }
        #expect(ours.opened(peer.sealed([1], &ciphers), &ciphers).1 == [1])
        _ = ours.opened(try keyUpdate(&peer), &ciphers)
        #expect(ours.state == .failed && ours.alert == .unexpectedMessage)
    }

    @Test("a replaced key is also wiped from its thread's ciphers", arguments: kinds)
    func forgottenKeys(kind: Kind) {
        var (ours, peer) = Self.pair(kind)
        #expect(ours.opened(peer.sealed([1], &ciphers), &ciphers).1 == [1])
        _ = ours.sealed([1], &ciphers)
        #expect(ciphers.keysInUse == 2)
        ours.eraseKeys(&ciphers)
        #expect(ciphers.keysInUse == 0)
    }

    @Test("a key is changed before it has sealed 2^24 records", arguments: kinds13)
    func ownKeyUpdate(kind: Kind) throws {
        let digest = kind.algorithm == .aes256GCM ? KeyDigest.sha384 : .sha256
        let secret = [UInt8](repeating: 1, count: digest.byteCount)
        let used = TrafficKey(secret: secret, kind.algorithm, digest, sequence: (1 << 24) - 1)
        var ours = SecureChannel(
            kind.version, kind.algorithm, digest, inbound: used, outbound: used)
        var peer = ours
        #expect(!ours.needsKeyUpdate)
        #expect(peer.opened(ours.sealed([1], &ciphers), &ciphers).1 == [1])
        #expect(ours.needsKeyUpdate)
        _ = peer.opened(try keyUpdate(&ours), &ciphers)
        #expect(!ours.needsKeyUpdate)
        #expect(peer.opened(ours.sealed([2], &ciphers), &ciphers).1 == [2])
    }

    @Test("connections that share ciphers keep their keys apart", arguments: kinds)
    func sharedCiphers(kind: Kind) {
        var (one, peerOfOne) = Self.pair(kind)
        var (two, peerOfTwo) = Self.pair(
            Kind(version: kind.version == .tls12 ? .tls13 : .tls12, algorithm: kind.algorithm))
        for round in UInt8(0)..<20 {
            #expect(one.opened(peerOfOne.sealed([round], &ciphers), &ciphers).1 == [round])
            #expect(two.opened(peerOfTwo.sealed([round], &ciphers), &ciphers).1 == [round])
            #expect(peerOfOne.opened(one.sealed([round], &ciphers), &ciphers).1 == [round])
        }
    }

    @Test("erased keys are wiped")
    func erasure() {
        var (ours, _) = Self.pair(Self.kinds[3])
        withUnsafeBytes(of: ours) { #expect($0.filter { $0 == 1 || $0 == 2 }.count > 60) }
        ours.eraseKeys()
        withUnsafeBytes(of: ours) { #expect($0.filter { $0 != 0 }.count < 16) }
    }
}

/// A clock that the test sets.
private final class TestClock {
    var seconds: UInt32

    init(_ seconds: UInt32) { self.seconds = seconds }
}
