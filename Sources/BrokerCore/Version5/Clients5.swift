import MQTTCodec
import Structures

/// What the connections of clients of MQTT 5.0 have beyond others: a record beside ``Connection`` for
/// each, at the same index, so that a connection of an earlier version costs nothing.
package struct Clients5: ~Copyable {
    /// 16 bytes.
    package struct Client: BitwiseCopyable {
        /// Seconds, as CONNECT said, not as granted: DISCONNECT is compared with it.
        package var sessionExpiry: UInt32 = 0
        /// Bytes of a whole packet [MQTT-3.1.2-24].
        package var maximumPacketSize: UInt32 = .max
        /// PUBLISH packets of QoS 1 and 2 in flight to the client [MQTT-3.3.4-9].
        package var receiveMaximum: UInt16 = .max
        /// False keeps reasons in words out of all but CONNACK and DISCONNECT [MQTT-3.1.2-29].
        package var requestsProblemInformation = true
        /// The client left it to the broker to name it [MQTT-3.1.3-7].
        package var wasNamed = false

        package init() {}

        package init(_ terms: ClientTerms, wasNamed: Bool) {
            sessionExpiry = terms.sessionExpiry
            maximumPacketSize = terms.maximumPacketSize
            receiveMaximum = terms.receiveMaximum
            requestsProblemInformation = terms.requestsProblemInformation
            self.wasNamed = wasNamed
        }
    }

    /// Never read; see the same in ``Shard``.
    private let addressOnly: any Sendable = ()
    private var clients: [Client] = []
    /// By connection index; few clients use aliases.
    private var aliases: [UInt32: TopicAliases] = [:]
    private let pool: BytePool

    package init(pool: BytePool) { self.pool = pool }

    /// What an open connection of a client of 5.0 has.
    @inline(__always)
    package subscript(connection: Handle) -> Client {
        let index = Int(connection.index)
        return index < clients.count ? clients[index] : Client()
    }

    package mutating func add(_ connection: Handle, _ client: Client) {
        let index = Int(connection.index)
        if index >= clients.count {
            clients.append(contentsOf: repeatElement(Client(), count: index + 1 - clients.count))
        }
        clients[index] = client
    }

    /// Forgets a connection that closes: its aliases end with it [MQTT-3.3.2-7].
    package mutating func remove(_ connection: Handle) {
        guard !aliases.isEmpty, var known = aliases.removeValue(forKey: connection.index) else {
            return
        }
        known.removeAll(in: pool)
    }

    // MARK: Topic aliases

    /// The topic that an alias stands for, valid until the alias gets another one; `nil` for none.
    package func topic(of alias: TopicAlias, _ connection: Handle) -> UnsafeRawBufferPointer? {
        aliases[connection.index]?.topic(of: alias)
    }

    /// Has an alias stand for a topic from now on; false for one beyond what was announced, or for
    /// topics that together are too long.
    package mutating func set(
        _ alias: TopicAlias, _ topic: UnsafeRawBufferPointer, _ connection: Handle
    ) -> TopicAliases.Answer {
        aliases[connection.index, default: TopicAliases()].set(alias, topic, pool: pool)
    }
}
