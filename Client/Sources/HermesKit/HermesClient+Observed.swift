#if canImport(Observation)
    import NIOConcurrencyHelpers
    import Observation

    extension HermesClient {
        /// A client's state and messages for views of SwiftUI, which are drawn anew when they change.
        ///
        /// ```swift
        /// @State private var orders = HermesClient.Observed(client, matching: "orders/7/#")
        ///
        /// var body: some View {
        ///     List(orders.messages) { Text($0.message.topic) }
        ///     Text(orders.isConnected ? "connected" : "\(orders.state)")
        /// }
        /// ```
        /// It looks on: it neither subscribes nor acknowledges, which is for the part of the app that
        /// saves messages, and any number of these may stand beside that.
        @available(iOS 17, macOS 14, tvOS 17, *)
        @MainActor
        @Observable
        public final class Observed {
            /// The client that is looked at.
            public let client: HermesClient
            /// The present state.
            public private(set) var state: State
            /// The messages that came since this began, the oldest first.
            public private(set) var messages: [Seen] = []

            /// A message with a number for lists.
            public struct Seen: Identifiable, Sendable {
                /// Counts from 1 in each ``HermesClient/Observed``.
                public let id: Int
                /// The message as it came.
                public let message: ReceivedMessage
            }

            private let mostMessages: Int
            private let tasks = Tasks()
            @ObservationIgnored private var seen = 0

            /// - Parameters:
            ///   - client: the client that is looked at.
            ///   - filter: whose messages are shown; all of them by default.
            ///   - count: so many of the newest are kept.
            public init(
                _ client: HermesClient, matching filter: String = "#", keeping count: Int = 100
            ) {
                self.client = client
                state = client.state
                mostMessages = max(count, 0)
                // Begins here, so that no message is missed, and goes on when the client is stopped and
                // started again.
                var copies = client.messages(matching: filter)
                copies.endsWithStop = false
                let (states, messages) = (client.states, copies.makeAsyncIterator())
                tasks.add { [weak self] in
                    while !Task.isCancelled {
                        for await state in states { self?.state = state }
                    }
                }
                tasks.add { [weak self] in
                    while let message = await messages.next() { self?.add(message) }
                }
            }

            /// The client is connected.
            public var isConnected: Bool {
                if case .connected = state { return true }
                return false
            }

            private func add(_ message: ReceivedMessage) {
                seen += 1
                messages.append(Seen(id: seen, message: message))
                if messages.count > mostMessages {
                    messages.removeFirst(messages.count - mostMessages)
                }
            }
        }
    }

    /// Tasks that are cancelled with this object.
    private final class Tasks: Sendable {
        private let tasks = NIOLockedValueBox<[Task<Void, Never>]>([])

        func add(_ loop: @escaping @MainActor @Sendable () async -> Void) {
            tasks.withLockedValue { $0.append(Task(operation: loop)) }
        }

        deinit {
            for task in tasks.withLockedValue({ $0 }) { task.cancel() }
        }
    }
#endif
