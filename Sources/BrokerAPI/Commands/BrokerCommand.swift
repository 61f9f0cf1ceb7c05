import Addresses
import MQTTCodec

/// One command of the admin plane, with a closure for its answer.
///
/// An HTTP route creates it, a mailbox passes it on, and the shard answers it. Its values keep
/// their types all the way. Each reply is called exactly once, on the shard's thread.
public enum BrokerCommand: Sendable {
    case status(Reply<BrokerStatus>)
    /// Counters and gauges; the caller adds figures of process and store.
    case figures(Reply<BrokerFigures>)
    case clients(ClientQuery, Reply<ClientPage>)
    case subscriptions(SubscriptionQuery, Reply<SubscriptionPage>)
    /// The clients that a message on a topic would reach now, the first `limit`.
    case topicReceivers(topic: String, qos: QoS, limit: Int, Reply<TopicReceivers>)
    case retainedList(RetainedQuery, Reply<RetainedPage>)
    /// `nil` without one.
    case retained(topic: String, Reply<RetainedMessage?>)
    /// Removes a topic's retained message, which subscribers are not told, and answers once that is
    /// stored: false without one.
    case removeRetained(topic: String, Reply<Bool>)
    /// `nil` without a connection or session of that client identifier.
    case client(String, Reply<ClientDetail?>)
    /// What happened to a client lately, with or without a session.
    case history(clientID: String, Reply<ClientHistory>)
    /// The clients in trouble, the newest trouble first: of one kind, or of all.
    case troubles(ClientEvent.Kind?, limit: Int, Reply<[ClientTrouble]>)
    /// Begins a live trace and answers with its number; `nil` when there are too many. It ends by its
    /// time, by ``endTrace(_:)``, or when nobody asks for its lines for 15 s.
    case beginTrace(TraceRequest, Reply<UInt32?>)
    /// The lines of a trace since the last answer.
    case traceLines(UInt32, Reply<TraceLines>)
    case endTrace(UInt32)
    /// Closes the client's connection like a network failure, so that its will is published and its
    /// session stays; false when it was offline.
    case disconnect(String, Reply<Bool>)
    /// Ends the client's session, with its connection, its subscriptions and what waits for it; false
    /// without one.
    case endSession(clientID: String, Reply<Bool>)
    /// Closes all connections of a user like network failures, and answers with their number.
    case disconnectUser([UInt8], Reply<Int>)
    /// Puts bans into force, unless newer ones are, closes the connections that they fit, and
    /// answers with their number.
    case setBans(BanTable, Reply<Int>)
    /// Users and addresses that are locked out after wrong passwords.
    case lockouts(Reply<[Lockout]>)
    /// Ends locks of a network's addresses, or all, forgets their wrong passwords, and answers with
    /// the number of locks.
    case clearLockouts(IPNetwork?, Reply<Int>)
    /// Closes all connections at a rate and refuses new ones, or changes the rate of a drain under
    /// way; answers with its state.
    case startDrain(perSecond: Int, serverReference: String?, Reply<DrainStatus>)
    case drainStatus(Reply<DrainStatus>)
    /// Ends a drain, so that clients can connect again.
    case endDrain(Reply<DrainEnd>)
    /// `nil` for an unknown client.
    case queue(QueueQuery, Reply<QueuePage?>)
    /// Drops a client's waiting messages, never those in flight, and answers when that is stored;
    /// `nil` for an unknown client. A long queue takes several commands: `below` is `nil` in the
    /// first, then ``QueueDrop/bound`` of the previous answer.
    case dropQueue(clientID: String, below: UInt64?, Reply<QueueDrop?>)
    /// Answers when the message is stored as `durability` requires. A refused message is a failure.
    case publish(Publication, Reply<PublishOutcome>)
    /// Publishes messages in order, in slices of several turns, and answers with an outcome for
    /// each when all are stored as `durability` requires. Senders bound a group, for instance to
    /// 1,024 messages and 1 MiB.
    case publishGroup([Publication], Reply<[PublishOutcome]>)
    /// The first events with higher numbers, at most so many, once there are any; none after 10 s.
    /// A further call answers the one before it with none.
    case receiptEvents(after: UInt64, most: Int, Reply<[ReceiptEvent]>)
    /// Drops the events up to this number; they are not told again, also after a restart.
    case receiptEventsTaken(through: UInt64)
    /// See ``WakeFeed``. A further call takes the place of the one before it.
    case nextWakes(Device.Kind, WakeDemand)
    case wakeAnswers([WakeAnswer])
    /// What a feature answers.
    case question(any AskedQuestion)

    /// True for what an operator does against an overload, and what must not wait for one to end.
    public var isUrgent: Bool {
        switch self {
        case .setBans, .startDrain, .endDrain: true
        default: false
        }
    }

    /// Answers any command with an error.
    public func refuse(_ error: BrokerUnavailable) {
        switch self {
        case .status(let reply): reply(.failure(error))
        case .figures(let reply): reply(.failure(error))
        case .clients(_, let reply): reply(.failure(error))
        case .subscriptions(_, let reply): reply(.failure(error))
        case .topicReceivers(_, _, _, let reply): reply(.failure(error))
        case .retainedList(_, let reply): reply(.failure(error))
        case .retained(_, let reply): reply(.failure(error))
        case .removeRetained(_, let reply): reply(.failure(error))
        case .client(_, let reply): reply(.failure(error))
        case .history(_, let reply): reply(.failure(error))
        case .troubles(_, _, let reply): reply(.failure(error))
        case .beginTrace(_, let reply): reply(.failure(error))
        case .traceLines(_, let reply): reply(.failure(error))
        case .endTrace: return
        case .disconnect(_, let reply): reply(.failure(error))
        case .endSession(_, let reply): reply(.failure(error))
        case .disconnectUser(_, let reply): reply(.failure(error))
        case .setBans(_, let reply): reply(.failure(error))
        case .lockouts(let reply): reply(.failure(error))
        case .clearLockouts(_, let reply): reply(.failure(error))
        case .startDrain(_, _, let reply): reply(.failure(error))
        case .drainStatus(let reply): reply(.failure(error))
        case .endDrain(let reply): reply(.failure(error))
        case .queue(_, let reply): reply(.failure(error))
        case .dropQueue(_, _, let reply): reply(.failure(error))
        case .publish(_, let reply): reply(.failure(error))
        case .publishGroup(_, let reply): reply(.failure(error))
        case .receiptEvents(_, _, let reply): reply(.failure(error))
        case .receiptEventsTaken: return
        case .nextWakes, .wakeAnswers: return
        case .question(let asked): asked.refuse(error)
        }
    }
}

public typealias BrokerAnswer<Value> = Result<Value, BrokerUnavailable>
public typealias Reply<Value> = @Sendable (BrokerAnswer<Value>) -> Void

/// A command was not carried out.
public enum BrokerUnavailable: Error, Sendable, Equatable {
    /// The data plane's mailbox is full.
    case overloaded
    /// The broker stops; a publish in progress may have been stored or not.
    case stopping
    /// The store accepts no messages: the disk fails, or is too slow. Nothing was published.
    case storeRefuses
    /// The disk is full or nearly full; nothing was published.
    case diskFull
    /// The store could not read a queue; the reason can be shown.
    case unreadable(String)
}
