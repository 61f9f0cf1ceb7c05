import Addresses
import BrokerAPI
import Logging
import TLS
import Transport

/// The settings of the data plane.
package struct BrokerSettings: Sendable {
    /// What a listener asks of WebSocket.
    package struct WebSocket: Sendable {
        /// The path of the request, from `/`.
        package var path: String
        /// Origins whose pages may connect.
        package var origins: [String]
        /// True when the query of the request may bring a token.
        package var readsTokenInQuery: Bool
        /// True when the request's header `Authorization` may bring a token.
        package var readsTokenInHeader: Bool

        package init(
            path: String, origins: [String], readsTokenInQuery: Bool, readsTokenInHeader: Bool
        ) {
            self.path = path
            self.origins = origins
            self.readsTokenInQuery = readsTokenInQuery
            self.readsTokenInHeader = readsTokenInHeader
        }
    }

    package struct Listener: Sendable {
        package var address: String
        package var port: UInt16
        /// True on `::` when another listener has its port for IPv4.
        package var isIPv6Only = false
        package var allowsAnonymous: Bool
        /// The context of TLS handshakes; `nil` for plain TCP.
        package var tls: TLSContext?
        /// Networks whose connections begin with a PROXY header.
        package var proxies: [IPNetwork]
        /// What is asked of WebSocket; `nil` for MQTT without it.
        package var webSocket: WebSocket?

        package init(
            address: String, port: UInt16, allowsAnonymous: Bool, tls: TLSContext? = nil,
            proxies: [IPNetwork] = [], webSocket: WebSocket? = nil
        ) {
            self.address = address
            self.port = port
            self.allowsAnonymous = allowsAnonymous
            self.tls = tls
            self.proxies = proxies
            self.webSocket = webSocket
        }
    }

    package var listeners: [Listener] = []
    package var limits = BrokerLimits()
    /// A connection whose output is unacknowledged for this long ends.
    package var userTimeout: Duration = .seconds(60)
    /// Interval of publishing the `$SYS/broker/...` topics; zero turns them off.
    package var systemTopicInterval: Duration = .seconds(10)
    /// The level of log lines about each connection and each end of one.
    package var connectionLogLevel = Logger.Level.info

    package init() {}
}
