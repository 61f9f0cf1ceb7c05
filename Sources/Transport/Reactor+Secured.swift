import CLinux
import Glibc
import Structures
import TLS

/// Reading and sending with TLS: records are opened into the buffers that plain input uses, and all
/// that a turn sends shares records and one send.
extension Reactor {
    /// A connection that speaks TLS. An idle one holds nothing but this.
    struct Secured: BitwiseCopyable {
        var channel: SecureChannel
        /// The begin of a record whose end has not arrived, in a pool buffer; `nil` when there is none.
        var input: UnsafeMutableRawPointer?
        var inputCount: UInt32 = 0
        var inputCapacity: UInt32 = 0
        /// The input came with the handshake, and nobody has looked at it.
        var isUnopened = false
        /// Records that the socket has not taken yet.
        var sealed = OutputQueue()
        /// Our direction is over: close_notify or another alert has left.
        var hasEnded = false

        /// Without keys: a slab copies what it begins with to places that nobody wipes.
        init() { channel = .none }
    }

    /// What arrived in one read must fit behind the input that may be kept, once it is opened.
    static var sharedRecordBytes: Int { sharedInputBytes - movableInputBytes }

    /// Where the record of such a connection is among ``secured``; `nil` for a plain one, and before the
    /// handshake is over.
    static func securedIndex(_ security: UInt32) -> UInt32? {
        security < awaitingProxyHeader ? security : nil
    }

    // MARK: Reading

    mutating func receiveSecured(_ handle: Handle) -> Received {
        let index = slots[handle.index].security
        guard index != Self.handshaking else {
            prepareStep(handle)
            return .wouldBlock
        }
        guard index != Self.awaitingProxyHeader else { return receiveProxyHeader(handle) }
        if let end = end(of: index, handle) { return end }
        let records = recordBuffer()
        let begun = Int(secured[index].inputCount)
        if let input = secured[index].input {
            records.copyMemory(from: input, byteCount: begun)
        }
        let descriptor = slots[handle.index].descriptor
        var arrived = UnsafeRawBufferPointer(start: records, count: begun)
        if secured[index].isUnopened {
            secured[index].isUnopened = false
        } else {
            let (count, code) = retrying {
                recv(descriptor, records + begun, Self.sharedRecordBytes - begun, 0)
            }
            guard count > 0 else { return nothingReceived(handle, count, code) }
            bytesReceived += UInt64(count)
            arrived = UnsafeRawBufferPointer(start: records, count: begun + count)
        }
        let target = roomForInput(handle, arrived.count)
        let opened = secured[index].channel.open(
            arrived, into: target.base + target.kept, &ciphers)
        keepRecord(index, arrived, from: opened.consumed)
        // The peer wants us to change our key, too: with what we send next, or with the next event.
        // However often it asks before it reads, it gets one answer (RFC 8446, section 4.6.3).
        if secured[index].channel.owesKeyUpdate { setAwaitsWritable(handle, true) }
        guard opened.produced > 0 else { return end(of: index, handle) ?? .wouldBlock }
        if secured[index].channel.state != .open {
            // What came before the end counts first; an event brings us back for the end.
            _ = shutdown(descriptor, CInt(SHUT_RD))
        }
        return .bytes(
            UnsafeRawBufferPointer(start: target.base, count: target.kept + opened.produced))
    }

    /// Whether input that came with the handshake waits for ``receive(_:)``, of which the kernel knows
    /// nothing.
    public func holdsUnopenedInput(_ handle: Handle) -> Bool {
        guard slots[handle.index].generation == handle.generation,
            let index = Self.securedIndex(slots[handle.index].security)
        else { return false }
        return secured[index].isUnopened
    }

    /// How the peer's direction ended, if it has.
    private func end(of index: UInt32, _ handle: Handle) -> Received? {
        switch secured[index].channel.state {
        case .open: nil
        case .closed: .endOfStream
        case .failed:
            .failed(
                SystemError(call: "TLS record", subject: address(of: handle), code: EBADMSG))
        }
    }

    /// The alert that answers what the peer sent, once ``receive(_:)`` has failed for it: `closeNotify`
    /// when the peer itself sent one. `nil` when no record is to blame.
    public func brokenRecordAlert(of handle: Handle) -> SecureChannel.Alert? {
        guard slots[handle.index].generation == handle.generation,
            let index = Self.securedIndex(slots[handle.index].security)
        else { return nil }
        switch secured[index].channel.state {
        case .open, .closed: return nil
        case .failed: return secured[index].channel.alert
        }
    }

    /// Where opened bytes go: behind the input that was kept, as in ``receive(_:)``.
    private mutating func roomForInput(
        _ handle: Handle, _ size: Int
    ) -> (base: UnsafeMutableRawPointer, kept: Int) {
        let kept = Int(slots[handle.index].inputCount)
        guard let input = slots[handle.index].input else { return (sharedInput, 0) }
        if kept > Self.movableInputBytes {
            if kept + size > Int(slots[handle.index].inputCapacity) {
                growInput(handle.index, to: max(kept + size, kept * 2))
            }
            return (slots[handle.index].input ?? input, kept)
        }
        sharedInput.copyMemory(from: input, byteCount: kept)
        return (sharedInput, kept)
    }

    /// Keeps the record that is not whole yet.
    mutating func keepRecord(
        _ index: UInt32, _ bytes: UnsafeRawBufferPointer, from consumed: Int
    ) {
        let remaining = bytes.count - consumed
        let isOpen = secured[index].channel.state == .open
        guard remaining > 0, isOpen, let source = bytes.baseAddress else {
            releaseRecord(index)
            return
        }
        if remaining > Int(secured[index].inputCapacity) {
            releaseRecord(index)
            let capacity = BytePool.capacity(for: remaining)
            secured[index].input = pool.allocate(capacity)
            secured[index].inputCapacity = UInt32(capacity)
            heldInputBytes += capacity
        }
        secured[index].input?.copyMemory(from: source + consumed, byteCount: remaining)
        secured[index].inputCount = UInt32(remaining)
    }

    private mutating func releaseRecord(_ index: UInt32) {
        guard let input = secured[index].input else { return }
        pool.deallocate(input, count: Int(secured[index].inputCapacity))
        heldInputBytes -= Int(secured[index].inputCapacity)
        secured[index].input = nil
        secured[index].inputCount = 0
        secured[index].inputCapacity = 0
    }

    // MARK: Writing

    /// So much that waits sealed shares a send with what follows, a session ticket above all; more leaves by
    /// itself.
    private static var movableSealedBytes: Int { 2 * 1_024 }

    /// Seals what waits, as much as fits the shared buffer at a time, and sends it; what the socket
    /// does not take waits sealed, and only then is no more sealed.
    mutating func sendSecured(_ handle: Handle, _ output: inout OutputQueue) -> Sent {
        let index = slots[handle.index].security
        guard index != Self.handshaking else {
            prepareStep(handle)
            return .blocked
        }
        guard index != Self.awaitingProxyHeader else {
            // Nobody has anything to say to a proxy.
            output.removeAll(in: pool)
            return .all
        }
        while true {
            let records = recordBuffer()
            var size = 0
            if secured[index].sealed.count <= Self.movableSealedBytes {
                var sealed = secured[index].sealed
                size = move(&sealed, atMost: Self.movableSealedBytes, to: records)
                secured[index].sealed = sealed
            } else {
                switch sendSealed(handle, index) {
                case .all: break
                case .blocked:
                    setAwaitsWritable(handle, true)
                    return .blocked
                case .failed(let error): return .failed(error)
                }
            }
            size = seal(&output, index, into: records, from: size)
            guard size > 0 else { break }
            let descriptor = slots[handle.index].descriptor
            let (sent, code) = retrying { hermes_send(descriptor, records, size) }
            if sent < 0, code != EAGAIN, code != EWOULDBLOCK, code != ENOBUFS {
                return .failed(SystemError(call: "send", subject: address(of: handle), code: code))
            }
            let taken = max(sent, 0)
            bytesSent += UInt64(taken)
            if taken < size {
                secured[index].sealed.append(
                    UnsafeRawBufferPointer(start: records + taken, count: size - taken),
                    pool: pool)
                setAwaitsWritable(handle, true)
                return .blocked
            }
        }
        setAwaitsWritable(handle, false)
        return .all
    }

    private mutating func sendSealed(_ handle: Handle, _ index: UInt32) -> Sent {
        let descriptor = slots[handle.index].descriptor
        while !secured[index].sealed.isEmpty {
            let count = secured[index].sealed.fill(segments, capacity: Self.segmentCapacity)
            let (sent, code) = retrying { hermes_send_vector(descriptor, segments, count) }
            guard sent >= 0 else {
                if code == EAGAIN || code == EWOULDBLOCK || code == ENOBUFS { return .blocked }
                return .failed(SystemError(call: "send", subject: address(of: handle), code: code))
            }
            bytesSent += UInt64(sent)
            secured[index].sealed.consume(sent, pool: pool)
        }
        return .all
    }

    /// Moves output into records, behind the `begun` bytes there; returns the size of all.
    private mutating func seal(
        _ output: inout OutputQueue, _ index: UInt32, into records: UnsafeMutableRawPointer,
        from begun: Int
    ) -> Int {
        var size = begun
        while true {
            let wanted = min(output.count, Int(secured[index].channel.largestFragment))
            // Room for a KeyUpdate before it.
            guard size + wanted + 3 * SecureChannel.largestOverhead <= Self.sharedRecordBytes else {
                break
            }
            if secured[index].channel.needsKeyUpdate {
                size += secured[index].channel.sealKeyUpdate(in: records + size, &ciphers)
            }
            guard wanted > 0 else { break }
            let content = records + size + secured[index].channel.contentOffset
            let count = move(&output, atMost: wanted, to: content)
            size += secured[index].channel.seal(count, in: records + size, &ciphers)
        }
        return size
    }

    /// Copies the first bytes of the output and drops them there; returns how many.
    private func move(
        _ output: inout OutputQueue, atMost wanted: Int, to target: UnsafeMutableRawPointer
    ) -> Int {
        let count = output.fill(segments, capacity: Self.segmentCapacity)
        var copied = 0
        for segment in 0..<count where copied < wanted {
            guard let base = segments[segment].base else { continue }
            let part = min(segments[segment].count, wanted - copied)
            (target + copied).copyMemory(from: base, byteCount: part)
            copied += part
        }
        output.consume(copied, pool: pool)
        return copied
    }

    // MARK: Ending

    /// Tells the peer that nothing more comes, or what was wrong with what it sent: a best effort, for
    /// which nothing waits.
    mutating func sendCloseNotify(_ handle: Handle) {
        guard let index = Self.securedIndex(slots[handle.index].security),
            !secured[index].hasEnded, case .all = sendSealed(handle, index)
        else { return }
        secured[index].hasEnded = true
        let record = recordBuffer()
        let alert = secured[index].channel.alert
        let size = secured[index].channel.seal(alert, in: record, &ciphers)
        let sent = hermes_send(slots[handle.index].descriptor, record, size)
        if sent > 0 { bytesSent += UInt64(sent) }
    }

    /// Frees what TLS holds for a connection that closes; false when its socket must stay open for a
    /// while.
    mutating func releaseSecurity(_ handle: Handle) -> Bool {
        guard slots[handle.index].security != Self.plain else { return true }
        guard let index = Self.securedIndex(slots[handle.index].security) else {
            return abandonHandshake(handle)
        }
        sendCloseNotify(handle)
        releaseRecord(index)
        secured[index].sealed.removeAll(in: pool)
        secured[index].channel.eraseKeys(&ciphers)
        secured.remove(index)
        return true
    }

    private mutating func recordBuffer() -> UnsafeMutableRawPointer {
        if let sharedRecords { return sharedRecords }
        let buffer = UnsafeMutableRawPointer.allocate(
            byteCount: Self.sharedRecordBytes, alignment: 64)
        sharedRecords = buffer
        return buffer
    }
}
