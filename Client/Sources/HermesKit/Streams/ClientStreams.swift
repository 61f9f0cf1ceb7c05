extension HermesClient {
    /// The client's states: the present one first, then every change. Any number of loops may run;
    /// each sees all of them. ``HermesClient/stop()`` ends them, behind `stopped`.
    public struct States: AsyncSequence, Sendable {
        /// The stream gives these.
        public typealias Element = State

        let board: StateBoard

        /// Begins a loop; what it sees counts from here.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(following: board) }

        /// One loop; for one task.
        public final class AsyncIterator: AsyncIteratorProtocol {
            private let board: StateBoard
            private let mailbox: Mailbox<State>
            private let number: Int

            init(following board: StateBoard) {
                self.board = board
                (mailbox, number) = board.follow()
            }

            deinit { board.unfollow(number) }

            /// The next state; `nil` when the client is stopped or the task is cancelled.
            public func next() async -> State? { await mailbox.take(since: 0) }
        }
    }

    /// The client's events, each of which goes to one loop. Those that nobody has taken are kept,
    /// up to 1,000; with more the oldest is dropped. ``HermesClient/stop()`` ends the loops.
    public struct Events: AsyncSequence, Sendable {
        /// The stream gives these.
        public typealias Element = Event

        static let mostUnread = 1_000

        let mailbox: Mailbox<Event>

        /// Begins a loop; what it sees counts from here.
        public func makeAsyncIterator() -> AsyncIterator {
            AsyncIterator(mailbox: mailbox, since: mailbox.ends)
        }

        /// One loop; for one task.
        public struct AsyncIterator: AsyncIteratorProtocol {
            let mailbox: Mailbox<Event>
            let since: Int

            /// The next event; `nil` when the client is stopped or the task is cancelled.
            public mutating func next() async -> Event? { await mailbox.take(since: since) }
        }
    }

    /// The messages for the app, in the order of arrival. With several loops each message goes to
    /// one of them. ``HermesClient/stop()`` ends the loops; messages that nobody took wait for the
    /// next one.
    public struct Deliveries: AsyncSequence, Sendable {
        /// The stream gives these.
        public typealias Element = Delivery

        let inlet: DeliveryInlet

        /// Begins a loop; what it sees counts from here.
        public func makeAsyncIterator() -> AsyncIterator {
            AsyncIterator(inlet: inlet, since: inlet.mailbox.ends)
        }

        /// One loop; for one task.
        public struct AsyncIterator: AsyncIteratorProtocol {
            let inlet: DeliveryInlet
            let since: Int

            /// The next message; `nil` when the client is stopped or the task is cancelled.
            public mutating func next() async -> Delivery? { await inlet.take(since: since) }
        }
    }

    /// Copies of messages for a part of the app that looks at a topic filter's; see
    /// ``HermesClient/messages(matching:)``.
    public struct Messages: AsyncSequence, Sendable {
        /// The stream gives these.
        public typealias Element = ReceivedMessage

        let board: MessageBoard
        let filter: [UInt8]
        /// False for a loop that goes on when the client is started again.
        var endsWithStop = true

        /// Begins a loop; what comes from here on is seen.
        public func makeAsyncIterator() -> AsyncIterator {
            AsyncIterator(following: board, filter, endsWithStop: endsWithStop)
        }

        /// One loop; for one task.
        public final class AsyncIterator: AsyncIteratorProtocol, Sendable {
            private let board: MessageBoard
            private let mailbox: Mailbox<ReceivedMessage>
            private let number: Int

            init(following board: MessageBoard, _ filter: [UInt8], endsWithStop: Bool) {
                self.board = board
                (mailbox, number) = board.follow(filter, endsWithStop: endsWithStop)
            }

            deinit { board.unfollow(number) }

            /// The next message; `nil` when the client is stopped or the task is cancelled.
            public func next() async -> ReceivedMessage? { await mailbox.take(since: 0) }
        }
    }
}
