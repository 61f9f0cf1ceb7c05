import Addresses
import BrokerAPI
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOPosix
import Synchronization

/// The HTTP server of the admin plane, on its own thread. It reaches the data plane only through
/// ``BrokerControl``, so that no request delays an MQTT client.
package struct AdminServer: Sendable {
    private let configuration: AdminServerConfiguration
    let routes: RouteTable
    private let logger: Logger
    private let gatekeeper: Gatekeeper
    private let counters = AdminCounters()
    private let bounds: PublishBounds
    private let feed: SnapshotFeed
    private let snapshots: SnapshotMaker

    /// - Throws: ``AdminServerError`` for an invalid template in the configuration.
    package init(
        configuration: AdminServerConfiguration, broker: any BrokerControl, logger: Logger
    ) throws(AdminServerError) {
        self.configuration = configuration
        self.logger = logger
        gatekeeper = Gatekeeper(
            adminToken: configuration.token, tokens: configuration.tokens,
            failuresPerMinute: configuration.maximumFailuresPerMinute, counters: counters,
            logger: logger)
        bounds = PublishBounds(counters: counters)
        feed = SnapshotFeed(mostViewers: configuration.limits.viewers)
        snapshots = SnapshotMaker(
            broker: broker, certificates: configuration.certificates,
            webhook: configuration.webhook, now: unixMilliseconds)
        do {
            let api = try Self.routes(configuration, broker, counters, bounds, logger)
            routes = RouteTable(
                api + [.events(feed), .listeners(configuration.listeners)]
                    + PageRoutes(
                        isServed: configuration.servesPage, listeners: configuration.listeners
                    ).routes)
        } catch {
            throw .template(error)
        }
        counters.requests.begin(routes.routes)
    }

    /// Serves until the task is cancelled, then lets requests in progress finish.
    ///
    /// - Parameter onListening: Called once, when every listener accepts.
    /// - Throws: ``AdminServerError`` when an address or the socket cannot be used.
    package func run(
        onListening: @escaping @Sendable (AdminEndpoints) -> Void
    ) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let result: Result<Void, any Error>
        do {
            try await serve(on: group, onListening: onListening)
            result = .success(())
        } catch {
            result = .failure(error)
        }
        try await group.shutdownGracefully()
        try result.get()
    }

    private static func routes(
        _ configuration: AdminServerConfiguration, _ broker: any BrokerControl,
        _ counters: AdminCounters, _ bounds: PublishBounds, _ logger: Logger
    ) throws(TopicTemplateError) -> [Route] {
        let publisher = Publisher(
            broker: broker, maximumPacketBytes: configuration.maximumBodyBytes,
            durability: configuration.durability, now: unixMilliseconds,
            log: PublishLog(logger: logger), batches: BatchPlaces(configuration.limits.batches),
            bounds: bounds, receiptTopics: configuration.receiptTopics)
        let orders = OrderStatusPublisher(
            publisher: publisher,
            topicTemplate: try TopicTemplate(
                configuration.orderTopicTemplate, places: ["sales_id", "order_id"]),
            channelTemplate: try TopicTemplate(
                configuration.orderChannelTemplate, places: ["sales_id"]),
            qos: configuration.orderQoS, maximumTopicLevels: configuration.maximumTopicLevels)
        let levels = configuration.maximumTopicLevels
        let publishing: [Route] = [
            .publish(publisher, maximumTopicLevels: levels),
            .message(publisher, maximumTopicLevels: levels),
            .messages(publisher, maximumTopicLevels: levels),
            orders.route, orders.batchRoute,
        ]
        let messages: [Route] =
            [.receipt(broker)] + ScheduledRoutes(broker: broker, now: unixMilliseconds).routes
            + PushRoutes(publisher: publisher, maximumTopicLevels: levels).routes
        let clients: [Route] =
            ClientRoutes(broker: broker).routes + QueueRoutes(broker: broker).routes
            + TagRoutes(broker: broker).routes
            + ArrivalRoutes(broker: broker).routes
            + [
                ExplainRoute(
                    broker: broker, senders: configuration.wakes, now: unixMilliseconds
                ).route
            ]
            + DeviceRoutes(broker: broker, senders: configuration.wakes).routes
            + SubscriptionRoutes(broker: broker, bounds: bounds, maximumTopicLevels: levels).routes
            + RetainedRoutes(broker: broker).routes + [.trace(broker)]
        let control = configuration.control.map { ConfigurationRoutes(control: $0).routes } ?? []
        return publishing + messages + clients + control
            + StoreRoutes(broker: broker, bans: configuration.bans).routes
            + BanRoutes(
                book: configuration.bans, broker: broker, now: unixMilliseconds, logger: logger
            ).routes
            + [TroubleRoute(broker: broker).route]
            + LockoutRoutes(broker: broker).routes + DrainRoutes(broker: broker).routes
            + UserRoutes(
                file: configuration.users, broker: broker,
                maximumLineBytes: configuration.maximumBodyBytes
            ).routes
            + AccessRuleRoutes(file: configuration.accessRules).routes
            + TokenRoutes(path: configuration.tokens?.path, now: unixMilliseconds).routes
            + StatusRoutes(
                broker: broker, version: configuration.version,
                durability: configuration.durability, counters: counters,
                certificates: configuration.certificates, webhook: configuration.webhook,
                loginService: configuration.loginService,
                wakes: configuration.wakes, control: configuration.control
            ).routes
    }

    // MARK: Listeners

    private typealias Listener = Server<AdminChildChannel>

    private func serve(
        on group: MultiThreadedEventLoopGroup,
        onListening: @escaping @Sendable (AdminEndpoints) -> Void
    ) async throws {
        let eventLoop = group.next()
        let executor = EventLoopTaskExecutor(eventLoop)
        let socketFile: UnixSocketFile? =
            if let path = configuration.unixSocketPath { try UnixSocketFile(path: path) } else {
                nil
            }
        let start = Startup(
            address: bindAddress, socketFile: socketFile, onListening: onListening)
        defer { socketFile?.remove(published: start.isSocketPublished) }

        var listeners = [tcpListener(on: group, start)]
        if let socketFile { listeners.append(unixListener(on: group, socketFile, start)) }
        let stopper = Stopper(listeners, executor: executor, logger: logger)

        // Not a child task: requests in progress get time before its cancellation.
        let serving = Task(executorPreference: executor) { [listeners] in
            // Is cancelled when this task ends.
            async let _: Void = feed.run(every: configuration.limits.snapshotInterval) {
                await snapshots.event()
            }
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                for listener in listeners { tasks.addTask { try await run(listener) } }
                let first = await tasks.nextResult()
                // When one listener ends, the others end too.
                feed.stop()
                await stopper.stop()
                while await tasks.nextResult() != nil {}
                try first?.get()
            }
        }
        let result = await withTaskCancellationHandler {
            await serving.result
        } onCancel: {
            // Its viewers would stay for as long as they are let.
            feed.stop()
            stopper.start()
            eventLoop.scheduleTask(in: configuration.limits.drain.timeAmount) { serving.cancel() }
        }
        await stopper.finish()
        if let failure = start.failure { throw failure }
        try result.get()
    }

    private func run(_ listener: Listener) async throws {
        do {
            try await listener.run()
        } catch let error as IOError {
            throw AdminServerError.cannotListen(
                ListenFailure(
                    section: "admin",
                    address: IPAddress.text(host: bindAddress, port: configuration.port),
                    code: error.errnoCode))
        } catch {
            throw AdminServerError.failed(reason: "\(error)")
        }
    }

    /// `localhost` could be IPv6; clients try 127.0.0.1 too.
    private var bindAddress: String {
        configuration.address == "localhost" ? "127.0.0.1" : configuration.address
    }

    private func tcpListener(on group: MultiThreadedEventLoopGroup, _ start: Startup) -> Listener {
        Listener(
            childChannelSetup: childChannel(
                hosts: HostPolicy(boundTo: bindAddress), gatekeeper: gatekeeper,
                places: configuration.limits.places,
                tls: configuration.certificates.map {
                    TLSLayer(
                        certificates: $0, limits: configuration.limits,
                        log: HandshakeLog(logger: logger))
                }),
            configuration: ServerConfiguration(
                address: .hostname(bindAddress, port: Int(configuration.port)),
                // A flood of connections shall not keep others waiting for the kernel to try again.
                backlog: 1_024),
            onServerRunning: { channel in start.tcpIsListening(channel) },
            eventLoopGroup: group, logger: quietLogger)
    }

    private func unixListener(
        on group: MultiThreadedEventLoopGroup, _ file: UnixSocketFile, _ start: Startup
    ) -> Listener {
        Listener(
            childChannelSetup: childChannel(
                hosts: .any, gatekeeper: nil, places: configuration.limits.unixPlaces, tls: nil),
            configuration: ServerConfiguration(address: .unixDomainSocket(path: file.draftPath)),
            onServerRunning: { channel in start.unixIsListening(channel) },
            eventLoopGroup: group, logger: quietLogger)
    }

    private func childChannel(
        hosts: HostPolicy, gatekeeper: Gatekeeper?,
        places: ConnectionPlaces, tls: TLSLayer?
    ) -> AdminChildChannel {
        let log = FloodLog(logger: logger)
        let connections = OpenConnections(
            places, trustsEveryone: gatekeeper == nil, counters: counters, log: log)
        let responder = AdminResponder(
            routes: routes, hosts: hosts, gatekeeper: gatekeeper, bounds: bounds,
            connections: connections, limits: configuration.limits, requests: counters.requests,
            maximumBodyBytes: configuration.maximumBodyBytes, date: HTTPDate(), logger: logger,
            log: log)
        return AdminChildChannel(
            responder: responder.respond, tls: tls, limits: configuration.limits,
            connections: connections, counters: counters, log: log)
    }

    /// Hummingbird logs its listeners at `info`, but hermesd logs them already.
    private var quietLogger: Logger {
        var logger = logger
        logger.logLevel = max(logger.logLevel, .notice)
        return logger
    }
}
