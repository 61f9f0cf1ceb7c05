import HermesClientCore
import HermesClientNIO
import NIOConcurrencyHelpers
import NIOCore

/// A long connection to a Hermes broker, or to any broker of MQTT 3.1.1: it comes back by itself,
/// delivers every message of QoS 1 and 2, and publishes across lost connections and kills of the
/// program.
///
/// ```swift
/// let client = try HermesClient(.init(
///     .tls("push.example", pins: [.init("sha256/…"), .init("sha256/…")]),
///     clientID: "phone-7", credentials: .refreshed { try await login() },
///     storage: .file("…/hermes.log")))
/// client.start()
/// try await client.subscribe("orders/7/#", qos: .atLeastOnce)
/// for await delivery in client.deliveries {
///     save(delivery)
///     delivery.acknowledge()
/// }
/// ```
///
/// All of it may be used from any thread and task. The client ends with its last reference, but a
/// program that wants to know when calls ``stop()``.
public final class HermesClient: Sendable {
    let engine: EngineReference
    private let outlets: ClientEngine.Outlets
    private let storageLock: StorageLock?
    private let allowsExactlyOnce: Bool
    #if canImport(Network)
        let pathWatch = NIOLockedValueBox<PathWatch?>(nil)
    #endif

    /// Opens and locks the storage; connects nowhere before ``start()``.
    ///
    /// - Throws: ``HermesClientError/configuration(_:)`` for a value that cannot be right, and
    ///   ``HermesClientError/storage(_:)`` if the file is locked by another client, belongs to
    ///   another client identifier, is none of a client, or cannot be used.
    public init(_ configuration: Configuration) throws {
        let settings = try configuration.coreSettings()
        let dialers = try configuration.servers.map { try $0.dialer() }
        let opened = try configuration.storage.open(owner: configuration.clientID)
        storageLock = opened.lock
        let loop = Dialer.sharedGroup.next()
        engine = EngineReference(on: loop)
        outlets = ClientEngine.Outlets(
            states: StateBoard(.stopped(.notStarted)),
            events: Mailbox(mostElements: Events.mostUnread),
            inlet: DeliveryInlet(engine: engine), log: configuration.log)
        allowsExactlyOnce = configuration.storage.survivesRestart
        if let damage = opened.damage {
            outlets.tell(.storageDamaged(bytes: damage.bytes, setAside: damage.setAside))
        }
        engine.set(
            ClientEngine(
                loop: loop, outlets: outlets, dialers: dialers, storage: opened.storage,
                machine: ClientMachine(
                    settings: settings, stored: opened.stored, logBytes: opened.logBytes,
                    random: SystemRandom()),
                provideCredentials: configuration.credentials.provider,
                reportTopic: configuration.reportTopic))
    }

    deinit {
        engine.release()
        // At once, because the next client with this file may be made in the next statement.
        storageLock?.release()
    }

    // MARK: Life

    /// Connects, and connects again whenever the connection is lost, until ``stop()``. A second call
    /// does nothing.
    public func start() { engine.execute { $0.start() } }

    /// Disconnects. Returns when every socket is closed and every loop over ``deliveries``,
    /// ``states`` and ``events`` has been ended; waiting calls throw ``HermesClientError/stopped(_:)``.
    ///
    /// Subscriptions, messages that the broker has not taken over and the session stay, for the
    /// next ``start()`` or the next run of the program.
    public func stop() async {
        await waiting { done in
            engine.execute(orElse: done) { engine in
                engine.stop()
                engine.afterConnections(done)
            }
        }
    }

    /// The present state.
    public var state: State { outlets.states.current }

    /// The present state and every change.
    public var states: States { States(board: outlets.states) }

    /// Losses, lost sessions, lost connections: what the app may want to tell its user or its log.
    public var events: Events { Events(mailbox: outlets.events) }

    /// The messages for the app.
    ///
    /// Nothing is lost between ``start()`` and the first loop: messages wait. The broker sends
    /// only a few, commonly 20, before the app acknowledges.
    public var deliveries: Deliveries { Deliveries(inlet: outlets.inlet) }

    /// Copies of the messages whose topic a filter covers, for any number of parts of the app: each
    /// loop gets all that come from its beginning on, in order, and acknowledges nothing. One that
    /// is slow keeps the newest 256.
    ///
    /// This neither subscribes nor acknowledges: a loop over ``deliveries`` does the latter, and
    /// without one nothing comes here after some 20 messages.
    ///
    /// - Parameter filter: by the rules of MQTT 3.1.1, section 4.7; that of a shared subscription
    ///   covers what follows its group's name.
    /// - Returns: The messages, for any number of loops.
    public func messages(matching filter: String) -> Messages {
        Messages(board: outlets.observers, filter: Array(filter.utf8))
    }

    // MARK: Messages

    /// Keeps a subscription until ``unsubscribe(_:)``: it is stored, sent as soon as there is a
    /// connection, and renewed when the broker has lost the session.
    ///
    /// Returns when the broker has granted it. Without a connection it waits; a cancelled task stops
    /// waiting, and the subscription stays. It stays too when the client is stopped, and this throws.
    ///
    /// - Parameters:
    ///   - filter: 1 to 65,535 bytes of UTF-8 by the rules of MQTT 3.1.1, section 4.7.
    ///   - qos: the highest QoS at which messages are to come.
    ///   - countsLosses: false for a filter that brings only a part of its channels' messages, as one
    ///     of a shared group does: holes in their sequences are no losses then.
    /// - Returns: The QoS that the broker grants, which may be lower.
    /// - Throws: ``HermesClientError/filter(_:)``, ``HermesClientError/tooManySubscriptions``,
    ///   ``HermesClientError/subscriptionRefused(_:)``, ``HermesClientError/storage(_:)``,
    ///   ``HermesClientError/qosNeedsStorage``, ``HermesClientError/stopped(_:)``, `CancellationError`.
    @discardableResult
    public func subscribe(
        _ filter: String, qos: QoS, countsLosses: Bool = true
    ) async throws -> QoS {
        try check(qos)
        let outcome = try await engine.perform {
            try $0.subscribe(filter, qos, countsLosses: countsLosses)
        }
        switch try await outcome.value {
        case .granted(let granted): return QoS(rawValue: granted) ?? qos
        case .refused: throw HermesClientError.subscriptionRefused(filter)
        case .unsubscribed: throw CancellationError()
        }
    }

    /// Ends a subscription. Returns when the broker has confirmed it; without a connection it waits
    /// for one, and a cancelled task stops waiting only.
    public func unsubscribe(_ filter: String) async throws {
        let outcome = try await engine.perform { try $0.unsubscribe(filter) }
        _ = try await outcome.value
    }

    /// Publishes a message. Returns when it is stored, for QoS 1 and 2: it then reaches the broker,
    /// across lost connections and, with a file as storage, kills of the program. QoS 0 is given to
    /// the connection.
    ///
    /// - Throws: ``HermesClientError/notConnected`` for QoS 0, ``HermesClientError/topic(_:)``,
    ///   ``HermesClientError/payloadTooLarge(bytes:limit:)``, ``HermesClientError/outboxFull``,
    ///   ``HermesClientError/qosNeedsStorage``, ``HermesClientError/storage(_:)``.
    public func publish(_ message: Message) async throws -> PublishReceipt {
        try check(message.qos)
        return PublishReceipt(
            outcome: try await engine.perform { try $0.publish(message) }, engine: engine)
    }

    private func check(_ qos: QoS) throws {
        if qos == .exactlyOnce, !allowsExactlyOnce { throw HermesClientError.qosNeedsStorage }
    }

    /// The messages that came lately and were taken by the app, the oldest first: 500, 1 MiB, of
    /// 24 hours. They are in memory: a restart of the program forgets them.
    public func recentMessages() async -> [ReceivedMessage] {
        let now = SystemClock.unixMilliseconds
        return (try? await engine.perform { $0.cache.all(at: now) }) ?? []
    }

    /// The client's counters now.
    public func statistics() async -> Statistics {
        (try? await engine.perform { $0.statistics }) ?? Statistics()
    }

    // MARK: What the app learns of the system

    /// The device uses another network, or none (`nil`): tries at once, and probes a connection
    /// that seems to be there. The label of before, once more, only probes. The label names the network for the heartbeat that it bears, for
    /// example "wifi office"; its first 128 bytes count.
    public func networkChanged(to label: String?) {
        engine.execute { engine in
            engine.handle { $0.networkChanged(to: label.map { Array($0.utf8) }, at: $1) }
        }
    }

    /// The system is about to suspend the program: reports, tells the broker and closes every
    /// socket. Takes effect in the order of the calls: call it where the system tells, not in a task
    /// of its own, which may run after the app is in the foreground again.
    ///
    /// - Parameter done: called, on some thread, when the sockets are closed, which takes two
    ///   seconds at most.
    public func enteredBackground(then done: @escaping @Sendable () -> Void) {
        engine.execute(orElse: done) { engine in
            engine.enteredBackground()
            engine.afterConnections(done)
        }
    }

    /// As ``enteredBackground(then:)``; returns when the sockets are closed.
    public func enteredBackground() async {
        await waiting { enteredBackground(then: $0) }
    }

    /// The app is on the screen: connects anew after the background. A connection that the client
    /// has in the foreground is kept if it shows within 3 s that it is alive, so that this may be
    /// called whenever the app becomes active.
    public func enteredForeground() {
        engine.execute { engine in engine.handle { $0.enteredForeground(at: $1) } }
    }

    /// The user wants a connection now: ends a wait, and probes a connection that seems to be there.
    public func reconnectNow() {
        engine.execute { engine in engine.handle { $0.tryNow(at: $1) } }
    }

    /// A push notification has woken the program: connects for 25 s in the background. A push that
    /// comes with ``start()``, before the app has told of foreground or background, has launched the
    /// program in the background.
    ///
    /// - Parameter done: called, on some thread, when the 25 s are over and the connection is
    ///   closed, or the app is in the foreground: then the system can be told.
    public func wokenByPush(then done: @escaping @Sendable () -> Void) {
        engine.execute(orElse: done) { engine in
            engine.handle { $0.wokenByPush(at: $1) }
            engine.afterWake(done)
        }
    }

    /// As ``wokenByPush(then:)``; returns when the wake-up is over.
    public func wokenByPush() async {
        await waiting { wokenByPush(then: $0) }
    }

    /// Waits for a callback; a cancelled task need not.
    private func waiting(for call: (@escaping @Sendable () -> Void) -> Void) async {
        let done = Outcome<Void>()
        call { done.finish(.success(())) }
        try? await done.value
    }
}
