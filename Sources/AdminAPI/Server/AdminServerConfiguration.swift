import Addresses
import BrokerAPI
import Credentials
import MQTTCodec

/// The configuration of the admin server.
package struct AdminServerConfiguration: Sendable {
    /// Numeric IPv4 or IPv6 address, or `localhost` for 127.0.0.1.
    package var address = "127.0.0.1"
    /// 0 chooses a free port.
    package var port: UInt16 = 8080
    /// HTTPS on the address above; `nil` for plain HTTP.
    package var certificates: AdminCertificates?
    /// Path of a Unix socket of mode 0600 that needs no token; `nil` for none.
    package var unixSocketPath: String?
    /// The administrator's token.
    package var token: AdminToken
    /// The configuration of the broker; `nil` offers none.
    package var control: (any ConfigurationControl)?
    /// The other tokens; `nil` for none.
    package var tokens: TokenChecks?
    /// The password file; `nil` without one.
    package var users: UserFile?
    /// The ACL file; `nil` without one.
    package var accessRules: AccessRulesFile?
    /// Clients, users and addresses that are shut out; `nil` without a data directory.
    package var bans: BanBook?
    /// Unknown tokens per minute and address; then the address has to wait. At least 1.
    package var maximumFailuresPerMinute = 30
    /// Bytes of a request body, and of the resulting PUBLISH packet.
    package var maximumBodyBytes = 1024 * 1024
    package var maximumTopicLevels = 128
    /// Contains `{sales_id}` and `{order_id}`.
    package var orderTopicTemplate = "orders/{sales_id}/{order_id}/status"
    /// Contains `{sales_id}`.
    package var orderChannelTemplate = "orders/{sales_id}"
    /// QoS of order updates: 0, 1 or 2.
    package var orderQoS = QoS.atLeastOnce
    /// Messages to topics that one of these matches have receipts unless the caller says otherwise.
    package var receiptTopics: [TokenTopic] = []
    /// "none", "interval" or "sync", for the answers to publishers.
    package var durability: String
    /// The version of Hermes.
    package var version: String
    package var limits = HTTPLimits()
    /// The listeners of MQTT clients, in the order of the configuration.
    package var listeners: [ListenerModel] = []
    /// True when the operator's page is served.
    package var servesPage = true
    /// Reads the figures of the webhook; `nil` without one.
    package var webhook: (@Sendable () -> WebhookFigures)?
    /// Reads the figures of the service that is asked about logins; `nil` without one.
    package var loginService: (@Sendable () -> LoginServiceFigures)?
    /// Reads the figures of the senders of notifications.
    package var wakes: @Sendable () -> WakeSenders = { WakeSenders() }

    package init(token: AdminToken, durability: String, version: String) {
        self.token = token
        self.durability = durability
        self.version = version
    }
}

/// The endpoints of a running admin server.
package struct AdminEndpoints: Sendable, Equatable {
    package var address: String
    /// The actual port.
    package var port: UInt16
    /// `nil` when there is no Unix socket.
    package var unixSocketPath: String?
}

/// The admin server cannot start or continue.
package enum AdminServerError: Error, Equatable, CustomStringConvertible {
    case template(TopicTemplateError)
    case cannotListen(ListenFailure)
    case failed(reason: String)
    case unixSocket(path: String, reason: String, fix: String)

    package var description: String {
        switch self {
        case .template(let error): "\(error)"
        case .cannotListen(let failure): "\(failure)"
        case .failed(let reason): "admin: \(reason). Start the broker again."
        case .unixSocket(let path, let reason, let fix):
            "admin.unix_socket: \(path): \(reason). \(fix)"
        }
    }
}
