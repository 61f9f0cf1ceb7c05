#if !canImport(Network)
    import HermesClientCore
    import NIOCore
    import NIOTLS

    /// Stands behind TLS: nothing is written before this finds the broker trusted.
    final class TrustHandler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let objection: () -> String?

        /// `objection` is asked when the handshake is complete, and says why the broker is not
        /// trusted.
        init(_ objection: @escaping () -> String?) { self.objection = objection }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            guard case .handshakeCompleted? = event as? TLSUserEvent else {
                context.fireUserInboundEventTriggered(event)
                return
            }
            if let text = objection() {
                context.fireErrorCaught(TransportFault(reason: .untrusted(text)))
            } else {
                context.fireUserInboundEventTriggered(TransportReady())
            }
        }
    }
#endif
