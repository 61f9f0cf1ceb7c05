import NIOCore
import Network

public final class NIOTSEventLoopGroup: EventLoopGroup {
    public static var singleton: NIOTSEventLoopGroup { fatalError("a declaration only") }

    public func next() -> any EventLoop { fatalError("a declaration only") }

    public func makeIterator() -> EventLoopIterator { fatalError("a declaration only") }

    public func shutdownGracefully(
        queue: DispatchQueue, _ callback: @escaping @Sendable ((any Error)?) -> Void
    ) {}
}

public enum NIOTSChannelOptions {
    public struct WaitForActivity: ChannelOption, Sendable {
        public typealias Value = Bool
    }

    public static var waitForActivity: WaitForActivity { WaitForActivity() }
}

public final class NIOTSConnectionBootstrap {
    public init(group: any EventLoopGroup) {}

    public func connectTimeout(_ timeout: TimeAmount) -> Self { self }

    public func channelOption<Option: ChannelOption>(
        _ option: Option, value: Option.Value
    ) -> Self { self }

    @preconcurrency public func channelInitializer(
        _ handler: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) -> Self { self }

    public func tlsOptions(_ options: NWProtocolTLS.Options) -> Self { self }

    public func configureNWParameters(
        _ configurator: @Sendable @escaping (NWParameters) -> Void
    ) -> Self { self }

    public func connect(host: String, port: Int) -> EventLoopFuture<any Channel> {
        fatalError("a declaration only")
    }
}
