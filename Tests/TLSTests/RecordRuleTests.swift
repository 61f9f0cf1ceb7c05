import HermesTesting
import Testing

@testable import TLS

/// Violations by a peer. The peer is our own record layer with exchanged keys, which seals any
/// content.
@Suite("TLS records: rules")
final class RecordRuleTests {
    typealias ContentType = SecureChannel.ContentType

    private var ciphers = RecordCiphers()

    private func keyUpdate(_ peer: inout SecureChannel) throws -> [UInt8] {
        var record = [UInt8](repeating: 0, count: 64)
        let size = try record.withUnsafeMutableBytes {
            peer.sealKeyUpdate(in: try #require($0.baseAddress), &ciphers)
        }
        return [UInt8](record[..<size])
    }

    @Test("any changed bit, any missing record, any repeat is found", arguments: RecordKind.all)
    func authenticity(kind: RecordKind) {
        var (_, peer) = kind.pair()
        let first = peer.sealed([1, 2, 3, 4], &ciphers)
        let second = peer.sealed([5], &ciphers)
        for bit in 0..<first.count * 8 {
            var changed = first
            changed[bit / 8] ^= 1 << (bit % 8)
            var (ours, _) = kind.pair()
            let (opened, bytes) = ours.opened(changed + second, &ciphers)
            #expect(bytes.isEmpty && opened.produced == 0, "bit \(bit)")
            // A longer length waits for more bytes; anything else must fail.
            if opened.consumed > 0 { #expect(!ours.isOpen, "bit \(bit)") }
        }
        for stream in [second, first + first, first + second + first] {
            var (ours, _) = kind.pair()
            _ = ours.opened(stream, &ciphers)
            #expect(ours.state == .failed(.badRecordMAC))
        }
        var (ours, _) = kind.pair()
        #expect(ours.opened(first + second, &ciphers).1 == [1, 2, 3, 4, 5])
        #expect(ours.state == .open)
    }

    @Test("a record may carry 16,384 bytes and not one more", arguments: RecordKind.all)
    func lengths(kind: RecordKind) {
        var (ours, peer) = kind.pair()
        let most = [UInt8](repeating: 9, count: SecureChannel.largestPlaintext)
        #expect(ours.opened(peer.sealed(most, &ciphers), &ciphers).1 == most)
        #expect(ours.opened(peer.sealed(most + [9], &ciphers), &ciphers).1 == [])
        #expect(ours.state == .failed(.recordOverflow))
    }

    @Test(
        "a length beyond TLS's limit is rejected before its bytes arrive",
        arguments: RecordKind.all)
    func overlongHeader(kind: RecordKind) {
        let allowed = 16_384 + (kind.version == .tls13 ? 256 : 2_048)
        for (length, isRefused) in [(allowed, false), (allowed + 1, true), (65_535, true)] {
            var (ours, _) = kind.pair()
            let header = [23, 3, 3, UInt8(length >> 8), UInt8(length & 0xFF)]
            #expect(ours.opened(header, &ciphers).0.consumed == 0)
            #expect(ours.state == (isRefused ? .failed(.recordOverflow) : .open), "\(length)")
        }
    }

    @Test("a record too short for its tag is no record", arguments: RecordKind.all)
    func shortRecords(kind: RecordKind) {
        for length in 0..<(kind.version == .tls13 ? 17 : 16) {
            var (ours, _) = kind.pair()
            let record = [23, 3, 3, 0, UInt8(length)] + [UInt8](repeating: 0, count: length)
            #expect(ours.opened(record, &ciphers).1 == [])
            #expect(ours.state == .failed(.badRecordMAC), "\(length)")
        }
    }

    @Test("records without data are taken, but not for ever", arguments: RecordKind.all)
    func emptyRecords(kind: RecordKind) {
        var (ours, peer) = kind.pair()
        for _ in 0..<3 {
            for _ in 0..<32 { _ = ours.opened(peer.sealed([], &ciphers), &ciphers) }
            #expect(ours.opened(peer.sealed([1], &ciphers), &ciphers).1 == [1])
        }
        for _ in 0..<33 { _ = ours.opened(peer.sealed([], &ciphers), &ciphers) }
        #expect(ours.state == .failed(.unexpectedMessage))
    }

    @Test("padding is taken off, and counts towards the length", arguments: RecordKind.tls13)
    func padding(kind: RecordKind) {
        var (ours, peer) = kind.pair()
        // The type appended by sealing is the last zero; the true one is before the zeros.
        let padded: [UInt8] = [1, 2, ContentType.applicationData, 0, 0, 0]
        #expect(ours.opened(peer.sealed(padded, type: 0, &ciphers), &ciphers).1 == [1, 2])
        let zeros = [UInt8](repeating: 0, count: 20)
        #expect(ours.opened(peer.sealed(zeros, type: 0, &ciphers), &ciphers).1 == [])
        #expect(ours.state == .failed(.unexpectedMessage))
        (ours, peer) = kind.pair()
        let long: [UInt8] =
            [1, ContentType.applicationData] + [UInt8](repeating: 0, count: 16_383)
        #expect(ours.opened(peer.sealed(long, type: 0, &ciphers), &ciphers).1 == [])
        #expect(ours.state == .failed(.recordOverflow))
    }

    @Test("a client that wants small records may send no larger ones", arguments: RecordKind.all)
    func fragments(kind: RecordKind) {
        var (ours, peer) = kind.pair(largestFragment: 512)
        let most = [UInt8](repeating: 1, count: 512)
        #expect(ours.opened(peer.sealed(most, &ciphers), &ciphers).1 == most)
        #expect(ours.opened(peer.sealed(most + [1], &ciphers), &ciphers).1 == [])
        #expect(ours.state == .failed(.recordOverflow))
    }

    @Test("without protection nothing is taken", arguments: RecordKind.all)
    func plaintext(kind: RecordKind) {
        for type in UInt8.min...UInt8.max where type != ContentType.applicationData {
            var (ours, _) = kind.pair()
            let record = [type, 3, 3, 0, 40] + [UInt8](repeating: 0, count: 40)
            #expect(ours.opened(record, &ciphers).1 == [])
            let alert =
                kind.version == .tls13 ? SecureChannel.Alert.unexpectedMessage : .badRecordMAC
            #expect(ours.state == .failed(alert))
        }
    }

    @Test(
        "types that have no place behind a handshake end the connection", arguments: RecordKind.all)
    func types(kind: RecordKind) {
        for type in UInt8.min...UInt8.max
        where ![0, ContentType.alert, ContentType.handshake, ContentType.applicationData]
            .contains(type)
        {
            var (ours, peer) = kind.pair()
            #expect(ours.opened(peer.sealed([1], type: type, &ciphers), &ciphers).1 == [])
            #expect(ours.state == .failed(.unexpectedMessage), "\(type)")
        }
    }

    @Test("keys change as often as a peer may want, and not more", arguments: RecordKind.tls13)
    func keyUpdates(kind: RecordKind) throws {
        let clock = TestClock(1_000)
        ciphers = RecordCiphers { clock.seconds }
        var (ours, peer) = kind.pair()
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
        #expect(ours.state == .failed(.unexpectedMessage))
    }

    @Test(
        "a quiet connection may change its keys for ever, at its pace", arguments: RecordKind.tls13)
    func slowKeyUpdates(kind: RecordKind) throws {
        let clock = TestClock(.max - 500)
        ciphers = RecordCiphers { clock.seconds }
        var (ours, peer) = kind.pair()
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
        #expect(ours.state == .failed(.unexpectedMessage))
    }

    @Test("a replaced key is also wiped from its thread's ciphers", arguments: RecordKind.all)
    func forgottenKeys(kind: RecordKind) {
        var (ours, peer) = kind.pair()
        #expect(ours.opened(peer.sealed([1], &ciphers), &ciphers).1 == [1])
        _ = ours.sealed([1], &ciphers)
        #expect(ciphers.keysInUse == 2)
        ours.eraseKeys(&ciphers)
        #expect(ciphers.keysInUse == 0)
    }

    @Test("a key is changed before it has sealed 2^24 records", arguments: RecordKind.tls13)
    func ownKeyUpdate(kind: RecordKind) throws {
        let digest = kind.digest
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

    @Test("connections that share ciphers keep their keys apart", arguments: RecordKind.all)
    func sharedCiphers(kind: RecordKind) {
        var (one, peerOfOne) = kind.pair()
        let other = RecordKind(
            version: kind.version == .tls12 ? .tls13 : .tls12, algorithm: kind.algorithm)
        var (two, peerOfTwo) = other.pair()
        for round in UInt8(0)..<20 {
            #expect(one.opened(peerOfOne.sealed([round], &ciphers), &ciphers).1 == [round])
            #expect(two.opened(peerOfTwo.sealed([round], &ciphers), &ciphers).1 == [round])
            #expect(peerOfOne.opened(one.sealed([round], &ciphers), &ciphers).1 == [round])
        }
    }

    @Test("erased keys are wiped")
    func erasure() {
        var (ours, _) = RecordKind.tls13[0].pair()
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
