import NIOCore
import NIOPosix
import NIOSSL

/// Asks a server for its certificate without trusting anything, to say what is wrong with one that
/// was refused. Sends the server only the beginning of a handshake.
enum CertificateProbe {
    /// The server's chain, leaf first; empty when it shows none in time.
    static func chain(
        host: String, port: UInt16, on group: any EventLoopGroup, within limit: TimeAmount
    ) async -> [NIOSSLCertificate] {
        let eventLoop = group.next()
        let found = eventLoop.makePromise(of: [NIOSSLCertificate].self)
        let context = try? NIOSSLContext(configuration: ClientTLS().configuration)
        guard let context else { return [] }
        let bootstrap = ClientBootstrap(group: eventLoop).connectTimeout(limit)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let isAddress = (try? SocketAddress(ipAddress: host, port: 0)) != nil
                    let handler = try NIOSSLClientHandler(
                        context: context, serverHostname: isAddress ? nil : host,
                        customVerificationCallback: { chain, verdict in
                            found.succeed(chain)
                            verdict.succeed(.failed)
                        })
                    try channel.pipeline.syncOperations.addHandler(handler)
                }
            }
        let channel = try? await bootstrap.connect(host: host, port: Int(port)).get()
        let timer = eventLoop.scheduleTask(in: limit) { found.succeed([]) }
        if let channel {
            channel.closeFuture.whenComplete { _ in found.succeed([]) }
        } else {
            found.succeed([])
        }
        let chain = (try? await found.futureResult.get()) ?? []
        timer.cancel()
        try? await channel?.close()
        return chain
    }
}
