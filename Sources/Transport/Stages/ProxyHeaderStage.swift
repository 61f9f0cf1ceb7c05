/// A connection from a proxy: a header before everything, even TLS, names the client's address.
///
/// The header is peeked at and then read exactly, so that OpenSSL finds the bytes after it in the
/// kernel. An incomplete header waits in the connection's input buffer.
struct ProxyHeaderStage: BitwiseCopyable {
    /// True when TLS follows the header.
    let isSecured: Bool

    /// The listener whose rules for WebSocket the connection must meet; `nil` without WebSocket.
    let webSocket: UInt8?

    /// The stage after the header.
    func next(_ tables: inout StageTables) -> Stage {
        isSecured
            ? .handshake(HandshakeStage(webSocket: webSocket))
            : tables.last(over: nil, webSocket: webSocket)
    }

    /// Reads the available part of the header and nothing after it.
    func receive(
        _ descriptor: CInt, _ kept: inout KeptInput, _ bench: inout Workbench
    ) -> StageInput {
        let begun = kept.count
        precondition(begun < ProxyHeader.maximumSize, "\(begun) bytes of a header were kept")
        let buffer = kept.room(for: ProxyHeader.maximumSize, bench).base
        let (count, code) = bench.peek(
            descriptor, into: buffer + begun, count: ProxyHeader.maximumSize - begun)
        guard count > 0 else { return .nothing(count, code) }
        let bytes = UnsafeRawBufferPointer(start: buffer, count: begun + count)
        let header: ProxyHeader?
        do throws(MalformedProxyHeader) {
            header = try ProxyHeader.decode(bytes.bytes)
        } catch {
            return .malformedProxyHeader(error)
        }
        let used = (header?.size ?? bytes.count) - begun
        let (taken, failure) = bench.receive(descriptor, into: buffer + begun, count: used)
        guard taken == used else { return .nothing(taken, failure) }
        kept.keep(bytes, from: header == nil ? 0 : bytes.count, in: bench.pool)
        return header.map { .proxyHeader($0) } ?? .wouldBlock
    }
}
