import BrokerTesting
import Glibc
import HermesTesting
import MQTTCodec
import Synchronization
import Testing

/// The broker of one test: its own shard in memory, or the shared `hermesd`.
///
/// Client identifiers and topics begin with a prefix of the test, because all tests over TCP share
/// one broker. The creator calls ``close()`` at the end, by `defer`.
final class BrokerUnderTest {
    /// Time for a complete CONNECT in milliseconds; shorter than the default, because tests over
    /// TCP wait for it.
    static let connectTimeout = 5_000
    private static let count = Atomic<Int>(0)

    let transport: Transport
    /// Prefix of all client identifiers and topics of this test; letters and digits.
    let prefix: String
    /// Keeps connections open until the test ends.
    private(set) var clients: [Client] = []
    /// A persistent client whose session is changed whenever a fence needs a commit.
    private var committer: Client?
    private let link: ShardLink?
    private let port: UInt16

    init(_ transport: Transport) throws {
        self.transport = transport
        let number = Self.count.add(1, ordering: .relaxed).newValue
        prefix = "t\(number)p\(getpid())"
        switch transport {
        case .memory:
            link = ShardLink({ $0.connectTimeout = .milliseconds(Self.connectTimeout) })
            port = 0
        case .tcp, .webSocket:
            link = nil
            port = try HermesdProcess.port(transport)
        }
    }

    /// Ends all connections.
    func close() {
        for client in clients { client.reset() }
        clients.removeAll()
        committer?.reset()
        committer = nil
    }

    /// A topic or filter with this test's prefix.
    func topic(_ rest: String) -> String { "\(prefix)/\(rest)" }

    /// A client identifier with this test's prefix.
    func identifier(_ name: String) -> String { "\(prefix)-\(name)" }

    /// A new connection.
    func open() throws -> Client {
        let wire: any ConformanceWire =
            if let link {
                MemoryWire(link)
            } else if transport == .webSocket {
                try WebSocketWire(port: port)
            } else {
                try TCPWire(port: port)
            }
        let client = Client(wire, of: self)
        clients.append(client)
        return client
    }

    /// A new connection of WebSocket, whose frames the test makes itself.
    func openFrames() throws -> WebSocketWire { try WebSocketWire(port: port) }

    /// A CONNECT of this test's client `name`.
    func connectPacket(
        _ name: String, cleanSession: Bool = true, keepAlive: UInt16 = 0,
        will: PacketContent.Will? = nil, userName: String? = nil, version: Connect.Version = .v3_1_1
    ) -> PacketContent {
        var connect = PacketContent.Connect(clientID: identifier(name))
        connect.version = version
        connect.cleanSession = cleanSession
        connect.keepAlive = keepAlive
        connect.will = will
        connect.userName = userName.map { Array($0.utf8) }
        return .connect(connect)
    }

    /// A connected client; checks that CONNACK is as the arguments ask.
    func connect(
        _ name: String, cleanSession: Bool = true, keepAlive: UInt16 = 0,
        will: PacketContent.Will? = nil, userName: String? = nil, sessionPresent: Bool = false,
        _ location: SourceLocation = #_sourceLocation
    ) throws -> Client {
        let client = try open()
        try client.send(
            connectPacket(
                name, cleanSession: cleanSession, keepAlive: keepAlive, will: will,
                userName: userName))
        try client.expectBytes([0x20, 0x02, sessionPresent ? 1 : 0, 0x00], location)
        return client
    }

    /// A client with one subscription.
    func subscriber(
        _ name: String = "subscriber", to filter: String, _ qos: QoS, cleanSession: Bool = true,
        _ location: SourceLocation = #_sourceLocation
    ) throws -> Client {
        let client = try connect(name, cleanSession: cleanSession, location)
        try client.subscribe(filter, qos, location)
        return client
    }

    /// Waits until the broker has handled and stored everything sent on any connection.
    ///
    /// PINGRESP shows that earlier packets were handled, but it does not wait for the disk. So a
    /// persistent session subscribes again after it: its SUBACK waits for a commit after all
    /// others.
    func fence() throws {
        for client in clients where client.needsFence { try client.fence() }
        let committer = try committer ?? connectCommitter()
        try committer.subscribe("\(prefix)-nobody-publishes-here", .atMostOnce)
    }

    private func connectCommitter() throws -> Client {
        let client = try open()
        clients.removeLast()
        committer = client
        try client.send(connectPacket("committer", cleanSession: false))
        try client.expectBytes([0x20, 0x02, 0x00, 0x00])
        return client
    }

    /// Advances the time: exactly in memory, at least so long over TCP.
    func pass(milliseconds: Int) throws {
        guard let client = clients.first else { throw ConformanceFailure("no connection") }
        try client.pass(milliseconds: milliseconds)
    }
}
