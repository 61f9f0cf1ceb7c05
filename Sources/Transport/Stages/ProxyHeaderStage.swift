/// A connection that a proxy made: a header in front of everything else, TLS too, names the client's
/// address.
///
/// Bytes behind the header stay in the kernel, where OpenSSL may read them: the header is looked at
/// first, and exactly its bytes are taken. The part of it that has arrived waits in the connection's
/// input buffer.
struct ProxyHeaderStage: BitwiseCopyable {
    /// Whether TLS follows the header.
    let isSecured: Bool

    /// The stage that the header leads to.
    var next: Stage { isSecured ? .handshake(.awaitingClient) : .plain }

    /// Reads what has arrived of the header and nothing behind it.
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
