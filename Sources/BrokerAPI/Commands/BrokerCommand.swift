/// One question or order of the admin plane, with the way back for its answer.
///
/// An HTTP route makes it, a mailbox carries it, and the shard answers it: the values in it and in its
/// answer keep their shape all the way. Every reply is called exactly once, on the shard's thread.
package enum BrokerCommand: Sendable {
    case status(Reply<BrokerStatus>)
    /// Counters and gauges; the answer leaves figures of the process and the store to its reader.
    case figures(Reply<BrokerFigures>)
    case clients(ClientQuery, Reply<ClientPage>)
    /// `nil` when there is neither a connection nor a session of that client identifier.
    case client(String, Reply<ClientDetail?>)
    /// Closes the client's connection as a network failure would, so that its will is published and its
    /// session stays; false when it was not connected.
    case disconnect(String, Reply<Bool>)
    /// `nil` when there is no such client.
    case queue(QueueQuery, Reply<QueuePage?>)
    /// Drops messages that wait for a client, never those in flight, and answers once that is stored;
    /// `nil` when there is no such client. A long queue takes several commands: `below` is `nil` in the
    /// first, and then ``QueueDrop/bound`` of the answer before.
    case dropQueue(clientID: String, below: UInt64?, Reply<QueueDrop?>)
    /// Answered once the message is stored as `durability` promises.
    case publish(Publication, Reply<PublishCounts>)

    /// Answers with an error, whatever was asked.
    package func refuse(_ error: BrokerUnavailable) {
        switch self {
        case .status(let reply): reply(.failure(error))
        case .figures(let reply): reply(.failure(error))
        case .clients(_, let reply): reply(.failure(error))
        case .client(_, let reply): reply(.failure(error))
        case .disconnect(_, let reply): reply(.failure(error))
        case .queue(_, let reply): reply(.failure(error))
        case .dropQueue(_, _, let reply): reply(.failure(error))
        case .publish(_, let reply): reply(.failure(error))
        }
    }
}

package typealias BrokerAnswer<Value> = Result<Value, BrokerUnavailable>
package typealias Reply<Value> = @Sendable (BrokerAnswer<Value>) -> Void

/// A command was not carried out.
package enum BrokerUnavailable: Error, Sendable, Equatable {
    /// The data plane's mailbox is full.
    case overloaded
    /// The broker stops; of a publish that was under way nobody knows whether it was stored.
    case stopping
    /// The store takes no new messages at present: the disk refuses, or cannot keep up. Nothing was
    /// published.
    case storeRefuses
    /// The disk is full, or nearly; nothing was published.
    case diskFull
    /// The store could not read a queue; the reason is safe to show.
    case unreadable(String)
}
