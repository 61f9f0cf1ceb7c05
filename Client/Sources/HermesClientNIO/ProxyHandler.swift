#if !canImport(Network)
    import HermesClientCore
    import NIOCore

    /// The first handler of a connection to a proxy: asks it for a tunnel to the broker, and lets the
    /// others know of the connection only when there is one.
    ///
    /// On Apple's systems Network.framework does this.
    final class ProxyHandler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias InboundOut = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let proxy: ProxyAddress
        private let authority: String
        private var isOpen = false
        private var buffer = ByteBuffer()

        init(_ proxy: ProxyAddress, to authority: String) {
            self.proxy = proxy
            self.authority = authority
        }

        func channelActive(context: ChannelHandlerContext) {
            var lines = ["CONNECT \(authority) HTTP/1.1", "Host: \(authority)"]
            if let login = proxy.login {
                let text = Base64.text(Array("\(login.userName):\(login.password)".utf8))
                lines.append("Proxy-Authorization: Basic \(text)")
            }
            let request = (lines + ["", ""]).joined(separator: "\r\n")
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: request)), promise: nil)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard !isOpen else {
                context.fireChannelRead(data)
                return
            }
            var bytes = unwrapInboundIn(data)
            buffer.writeBuffer(&bytes)
            do throws(HTTPHead.Malformed) {
                guard let answer = try HTTPHead.take(from: &buffer) else { return }
                guard 200...299 ~= answer.status else {
                    return fail("it answered \(answer.status) \(answer.phrase)", context)
                }
            } catch {
                return fail("its answer is no HTTP", context)
            }
            isOpen = true
            context.fireChannelActive()
            if buffer.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(buffer)) }
            buffer = ByteBuffer()
        }

        private func fail(_ text: String, _ context: ChannelHandlerContext) {
            context.fireErrorCaught(TransportFault(reason: .proxyFailed(text)))
        }
    }
#endif
