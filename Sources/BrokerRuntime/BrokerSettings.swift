import BrokerAPI
import TLS
import Transport

/// All that an operator decides for a broker's data plane.
package struct BrokerSettings: Sendable {
    package struct Listener: Sendable {
        package var address: String
        package var port: UInt16
        package var allowsAnonymous: Bool
        /// What its handshakes begin with; `nil` serves plain TCP.
        package var tls: TLSContext?
        /// Whose connections begin with a header of the PROXY protocol.
        package var proxies: [PeerNetwork]

        package init(
            address: String, port: UInt16, allowsAnonymous: Bool, tls: TLSContext? = nil,
            proxies: [PeerNetwork] = []
        ) {
            self.address = address
            self.port = port
            self.allowsAnonymous = allowsAnonymous
            self.tls = tls
            self.proxies = proxies
        }
    }

    package var listeners: [Listener] = []
    package var limits = BrokerLimits()
    /// Unacknowledged output ends a connection after this long.
    package var userTimeout: Duration = .seconds(60)
    /// How often `$SYS/broker/...` is published; zero turns these topics off.
    package var systemTopicInterval: Duration = .seconds(10)

    package init() {}
}
