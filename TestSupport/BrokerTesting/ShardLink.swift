import Authorization
import BrokerCore
import BrokerFeatures
import BrokerAPI
import HermesTesting
import MQTTCodec
import MQTTCore
import Store
import Structures

/// A shard with simulated sockets and a clock that the test advances.
package final class ShardLink {
    package var shard: Shard
    package let store: DelayedStore
    private var nextIndex: UInt32 = 0
    private var kept: [Handle: [UInt8]] = [:]
    private var received: [Handle: [UInt8]] = [:]
    private var blocked: Set<Handle> = []
    package private(set) var closed: Set<Handle> = []
    package private(set) var notices: [BrokerNotice] = []
    /// Called before the output of a connection is sent.
    package var onSend: ((Handle) -> Void)?
    /// Answers password checks; any password is right at first.
    package var answer: (AuthenticationRequest) -> LoginAnswer = { _ in .rightPassword }

    /// With `access` or `verifiesPasswords`, user names are proven and any password is accepted.
    /// Unless `isDurable`, nothing is stored and ``store`` stays empty.
    package init(
        _ change: (inout BrokerLimits) -> Void = { _ in }, isImmediate: Bool = true,
        access: AccessRules? = nil, verifiesPasswords: Bool? = nil,
        asksBeforeCertificates: Bool = false, isDurable: Bool = true,
        systemTopicInterval: Duration = .seconds(10)
    ) {
        var limits = BrokerLimits()
        change(&limits)
        store = DelayedStore()
        store.isImmediate = isImmediate
        shard = Shard(
            limits: limits, allowsAnonymous: [true], systemTopicInterval: systemTopicInterval,
            store: isDurable ? store : MemoryStore(),
            verifiesPasswords: verifiesPasswords ?? (access != nil),
            asksBeforeCertificates: asksBeforeCertificates, access: access, seed: 1,
            now: MonotonicTime(milliseconds: 1_000_000), wallClockMs: 1_700_000_000_000)
        shard.reportsLifecycle = true
    }

    // MARK: Connections

    /// `origin` is the key of the peer's address.
    package func open(origin: UInt32 = 1) -> Handle {
        let handle = Handle(index: nextIndex, generation: nextIndex + 1)
        nextIndex += 1
        shard.open(handle, listener: 0, origin: origin)
        return handle
    }

    /// Opens a connection with an accepted CONNECT; its CONNACK is consumed.
    package func connect(
        _ identifier: String, cleanSession: Bool = true, origin: UInt32 = 1,
        _ change: (inout PacketContent.Connect) -> Void = { _ in }
    ) throws -> Handle {
        let handle = open(origin: origin)
        var connect = PacketContent.Connect(clientID: identifier)
        connect.cleanSession = cleanSession
        change(&connect)
        try send(handle, .connect(connect))
        store.completeAll()
        turn()
        _ = try take(handle)
        return handle
    }

    package func send(_ handle: Handle, _ packets: PacketContent...) throws {
        var bytes: [UInt8] = []
        for packet in packets { bytes.append(contentsOf: try packet.encoded()) }
        send(handle, bytes)
    }

    package func send(_ handle: Handle, _ bytes: [UInt8]) {
        receive(handle, bytes)
        turn()
    }

    /// Hands bytes to the shard, with the token of the request for WebSocket before them.
    package func send(_ handle: Handle, _ bytes: [UInt8], token: [UInt8]) {
        let consumed = bytes.withUnsafeBytes { bytes in
            token.withUnsafeBytes { shard.receive(handle, bytes, token: $0) }
        }
        kept[handle] = Array(bytes[consumed...])
        turn()
    }

    /// Hands bytes to the shard and leaves the turn to the caller.
    package func receive(_ handle: Handle, _ bytes: [UInt8]) {
        let all = (kept[handle] ?? []) + bytes
        let consumed = all.withUnsafeBytes { shard.receive(handle, $0) }
        kept[handle] = Array(all[consumed...])
    }

    /// Bytes that the shard has not handled yet.
    package func unreadCount(of handle: Handle) -> Int { kept[handle]?.count ?? 0 }

    package func lose(_ handle: Handle) {
        shard.lost(handle, .peerClosed)
        turn()
    }

    /// The packets that the broker has sent since the last call.
    package func take(_ handle: Handle) throws -> [PacketContent] {
        try PacketContent.decode(takeBytes(handle))
    }

    /// The bytes that the broker has sent since the last call.
    package func takeBytes(_ handle: Handle) -> [UInt8] {
        received.removeValue(forKey: handle) ?? []
    }

    // MARK: Turns

    package func advance(milliseconds: UInt64) {
        shard.beginTurn(
            at: shard.now.advanced(byMilliseconds: milliseconds),
            wallClockMs: shard.wallClockMs + Int64(milliseconds))
        turn()
    }

    /// Runs one turn; password checks succeed and cause another turn, as does work beyond the bound
    /// of a turn.
    package func turn() {
        while turnOnce() || shard.hasTurnWaiters {}
    }

    /// Runs one turn; true when a password check has succeeded in it.
    @discardableResult
    package func turnOnce() -> Bool {
        var hasAuthenticated = false
        while true {
            switch shard.nextStep() {
            case .readOverdue: continue
            case .offerInput(let handle):
                let bytes = kept[handle] ?? []
                let consumed = bytes.withUnsafeBytes { shard.receive(handle, $0) }
                kept[handle] = Array(bytes[consumed...])
            case .send(let handle):
                onSend?(handle)
                flush(handle, atMost: Shard.mostSentAtOnce)
            case .carryOut:
                let result = shard.takeResult()
                notices.append(contentsOf: result.notices)
                for closing in result.closing {
                    flush(closing.connection)
                    closed.insert(closing.connection)
                }
                for request in result.authentications {
                    shard.authenticated(request.connection, answer(request))
                    hasAuthenticated = true
                }
            case .finish:
                return hasAuthenticated
            }
        }
    }

    /// The connection's socket takes no output from now on.
    package func block(_ handle: Handle) { blocked.insert(handle) }

    /// As a socket with room for all of it: sends at most so many bytes, and reports what is left.
    private func flush(_ handle: Handle, atMost most: Int = .max) {
        guard !blocked.contains(handle) else { return }
        let pool = shard.pool
        let (bytes, isEmpty) = shard.withOutput(of: handle) { output in
            (output.take(atMost: most, pool: pool), output.isEmpty)
        }
        received[handle, default: []].append(contentsOf: bytes)
        if isEmpty { shard.drained(handle) } else { shard.sentPart(handle) }
    }

    package var closeReasons: [CloseReason] {
        notices.compactMap { notice in
            if case .closed(_, _, _, let reason, _) = notice { reason } else { nil }
        }
    }
}

extension OutputQueue {
    /// Removes the first bytes and returns them, at most so many.
    package mutating func take(atMost most: Int, pool: BytePool) -> [UInt8] {
        var bytes: [UInt8] = []
        var segment = Segment()
        while bytes.count < most, fill(&segment, capacity: 1) == 1 {
            let count = min(segment.count, most - bytes.count)
            bytes.append(contentsOf: UnsafeRawBufferPointer(start: segment.base, count: count))
            consume(count, pool: pool)
        }
        return bytes
    }
}

extension PacketContent {
    package static func publish(
        _ topic: String, _ payload: String, qos: QoS = .atMostOnce,
        _ identifier: PacketIdentifier = 1, isDuplicate: Bool = false, retain: Bool = false
    ) -> PacketContent {
        let delivery: Delivery =
            switch qos {
            case .atMostOnce: .atMostOnce
            case .atLeastOnce: .atLeastOnce(identifier, isDuplicate: isDuplicate)
            case .exactlyOnce: .exactlyOnce(identifier, isDuplicate: isDuplicate)
            }
        return .publish(
            Publish(delivery, topic: topic, payload: Array(payload.utf8), retain: retain))
    }

    package static func subscribe(_ filter: String, _ qos: QoS) -> PacketContent {
        .subscribe(1, [Request(filter, qos)])
    }
}
