#if canImport(ObjectiveC)
    import Foundation
    import HermesKit

    /// The client's connection, for Objective-C.
    @objc(HMSState)
    public enum HMSState: Int, Sendable {
        /// A try is under way.
        case connecting
        /// Messages go and come.
        case connected
        /// Another try follows by itself.
        case waiting
        /// In the background.
        case suspended
        /// No tries; the description says why.
        case stopped

        init(_ state: HermesClient.State) {
            switch state {
            case .connecting: self = .connecting
            case .connected: self = .connected
            case .waiting: self = .waiting
            case .suspended: self = .suspended
            case .stopped: self = .stopped
            }
        }
    }

    /// Hears of a client, on the main thread.
    @objc(HMSClientDelegate)
    @MainActor
    public protocol HMSClientDelegate: AnyObject {
        /// A message has come: save it, then acknowledge it.
        @objc(client:didReceiveDelivery:)
        func client(_ client: HMSClient, didReceive delivery: HMSDelivery)

        /// The connection has changed; the text is a phrase for a log.
        @objc(client:didChangeState:description:)
        optional func client(
            _ client: HMSClient, didChange state: HMSState, description: String)

        /// Something happened that the app may want to log: a loss, a lost session, a refused message.
        @objc(client:didTellEvent:)
        optional func client(_ client: HMSClient, didTell event: String)
    }

    /// A long connection to a Hermes broker, for Objective-C; see `HermesClient`.
    ///
    /// Completion handlers are called on some thread.
    @objc(HMSClient)
    public final class HMSClient: NSObject, Sendable {
        /// The client for Swift.
        public let client: HermesClient
        private let tasks = Tasks()

        /// Opens the storage; connects nowhere before ``start()``. The delegate is not kept alive.
        ///
        /// - Throws: What cannot be right in the configuration, or a storage that cannot be used.
        @MainActor
        @objc(initWithConfiguration:delegate:error:)
        public init(configuration: HMSConfiguration, delegate: any HMSClientDelegate) throws {
            client = try HermesClient(configuration.configuration)
            super.init()
            follow(delegate)
        }

        /// The loops end with the client's stop, and it may be started again.
        @MainActor
        private func follow(_ delegate: any HMSClientDelegate) {
            let client = client
            tasks.add { [weak self, weak delegate] in
                for await delivery in client.deliveries {
                    guard let self, let delegate else { return false }
                    delegate.client(self, didReceive: HMSDelivery(delivery))
                }
                return true
            }
            tasks.add { [weak self, weak delegate] in
                for await state in client.states {
                    guard let self, let delegate else { return false }
                    delegate.client?(
                        self, didChange: HMSState(state), description: state.description)
                }
                return true
            }
            tasks.add { [weak self, weak delegate] in
                for await event in client.events {
                    guard let self, let delegate else { return false }
                    delegate.client?(self, didTell: event.description)
                }
                return true
            }
        }

        /// See `HermesClient.start`.
        @objc public func start() { client.start() }

        /// See `HermesClient.stop`.
        @objc(stopWithCompletion:)
        public func stop(completion: @escaping @Sendable () -> Void) {
            Task { [client] in
                await client.stop()
                completion()
            }
        }

        /// See `HermesClient.subscribe`.
        @objc(subscribe:qos:completion:)
        public func subscribe(
            _ filter: String, qos: HMSQoS, completion: @escaping @Sendable ((any Error)?) -> Void
        ) {
            answer(completion) { _ = try await $0.subscribe(filter, qos: qos.qos) }
        }

        /// See `HermesClient.unsubscribe`.
        @objc(unsubscribe:completion:)
        public func unsubscribe(
            _ filter: String, completion: @escaping @Sendable ((any Error)?) -> Void
        ) {
            answer(completion) { try await $0.unsubscribe(filter) }
        }

        /// See `HermesClient.publish`: `stored` is called when the message is kept, and
        /// `acknowledged` when the broker has taken it over.
        @objc(publish:topic:qos:retain:stored:acknowledged:)
        public func publish(
            _ payload: Data, topic: String, qos: HMSQoS, retain: Bool,
            stored: @escaping @Sendable ((any Error)?) -> Void,
            acknowledged: @escaping @Sendable ((any Error)?) -> Void
        ) {
            Task { [client] in
                let receipt: HermesClient.PublishReceipt
                do {
                    receipt = try await client.publish(
                        .init(topic: topic, data: payload, qos: qos.qos, retain: retain))
                    stored(nil)
                } catch {
                    return stored(error)
                }
                do {
                    try await receipt.acknowledged
                    acknowledged(nil)
                } catch {
                    acknowledged(error)
                }
            }
        }

        private func answer(
            _ completion: @escaping @Sendable ((any Error)?) -> Void,
            _ call: @escaping @Sendable (HermesClient) async throws -> Void
        ) {
            Task { [client] in
                do {
                    try await call(client)
                    completion(nil)
                } catch {
                    completion(error)
                }
            }
        }

        /// See `HermesClient.registerDevice`.
        @objc(registerDeviceToken:bundle:completion:)
        public func registerDevice(
            token: Data, bundle: String, completion: @escaping @Sendable ((any Error)?) -> Void
        ) {
            answer(completion) { _ = try await $0.registerDevice(token: token, bundle: bundle) }
        }

        /// See `HermesClient.forgetDevice`.
        @objc(forgetDeviceWithCompletion:)
        public func forgetDevice(completion: @escaping @Sendable ((any Error)?) -> Void) {
            answer(completion) { _ = try await $0.forgetDevice() }
        }

        /// See `HermesClient.followNetwork`.
        @objc public func followNetwork() { client.followNetwork() }

        /// See `HermesClient.reconnectNow`.
        @objc public func reconnectNow() { client.reconnectNow() }

        /// See `HermesClient.enteredForeground`.
        @objc public func enteredForeground() { client.enteredForeground() }

        /// See `HermesClient.enteredBackground`.
        @objc(enteredBackgroundWithCompletion:)
        public func enteredBackground(completion: @escaping @Sendable () -> Void) {
            client.enteredBackground(then: completion)
        }

        /// See `HermesClient.wokenByPush`.
        @objc(wokenByPushWithCompletion:)
        public func wokenByPush(completion: @escaping @Sendable () -> Void) {
            client.wokenByPush(then: completion)
        }
    }

    /// Tasks that end with this object, and that begin again for as long as they return true.
    @MainActor
    private final class Tasks: Sendable {
        private var tasks: [Task<Void, Never>] = []

        nonisolated init() {}

        func add(_ loop: @escaping @MainActor @Sendable () async -> Bool) {
            tasks.append(
                Task {
                    while !Task.isCancelled, await loop() {}
                })
        }

        deinit {
            for task in tasks { task.cancel() }
        }
    }
#endif
