import Glibc
import Structures

/// Connections that a proxy made: a header in front of everything else, TLS too, says for whom.
extension Reactor {
    /// Has a connection begin with a header of the PROXY protocol; nothing of it may have been read or
    /// sent. ``receive(_:)`` then reports the header, and from there on what follows it.
    public mutating func expectProxyHeader(_ handle: Handle) {
        guard slots[handle.index].generation == handle.generation else { return }
        slots[handle.index].security = Self.awaitingProxyHeader
    }

    /// What follows the header stays in the kernel, where OpenSSL may read it: the header is looked at
    /// first, and exactly its bytes are taken. A part of it waits in the input buffer.
    mutating func receiveProxyHeader(_ handle: Handle) -> Received {
        let kept = Int(slots[handle.index].inputCount)
        precondition(kept < ProxyHeader.maximumSize, "\(kept) bytes of a header were kept")
        if let input = slots[handle.index].input {
            sharedInput.copyMemory(from: input, byteCount: kept)
        }
        let descriptor = slots[handle.index].descriptor
        let (count, code) = retrying {
            recv(
                descriptor, sharedInput + kept, ProxyHeader.maximumSize - kept,
                CInt(MSG_PEEK))
        }
        guard count > 0 else { return nothingReceived(handle, count, code) }
        let bytes = UnsafeRawBufferPointer(start: sharedInput, count: kept + count)
        let header: ProxyHeader?
        do throws(MalformedProxyHeader) {
            header = try ProxyHeader.decode(bytes.bytes)
        } catch {
            return .malformedProxyHeader(error)
        }
        let used = (header?.size ?? bytes.count) - kept
        let (taken, failure) = retrying { recv(descriptor, sharedInput + kept, used, 0) }
        guard taken == used else { return nothingReceived(handle, taken, failure) }
        bytesReceived += UInt64(used)
        guard let header else {
            keep(handle, bytes, from: 0)
            return .wouldBlock
        }
        keep(handle, bytes, from: bytes.count)
        let isSecured = handshakes[handle.index] != nil
        slots[handle.index].security = isSecured ? Self.handshaking : Self.plain
        if let source = header.source { setSource(source, at: handle.index) }
        return .proxyHeader
    }

    /// 24 bytes per slot, up to the highest one that a proxy's client ever had.
    private mutating func setSource(_ address: PeerAddress, at index: UInt32) {
        let missing = Int(index) + 1 - sources.count
        if missing > 0 {
            sources.append(contentsOf: repeatElement(.unknown, count: missing))
        }
        sources[Int(index)] = address
    }

    mutating func forgetSource(at index: UInt32) {
        if Int(index) < sources.count { sources[Int(index)] = .unknown }
    }

    /// The address that a header named; `nil` without one.
    func source(at index: UInt32) -> PeerAddress? {
        guard Int(index) < sources.count, sources[Int(index)].family != .unknown else {
            return nil
        }
        return sources[Int(index)]
    }
}
