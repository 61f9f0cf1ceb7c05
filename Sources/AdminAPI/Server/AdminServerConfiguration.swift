import Addresses
import MQTTCodec

/// What the admin server needs to know.
package struct AdminServerConfiguration: Sendable {
    /// Numeric IPv4 or IPv6 address, or `localhost` for 127.0.0.1.
    package var address = "127.0.0.1"
    /// 0 takes a free port.
    package var port: UInt16 = 8080
    /// Serves HTTPS on the address above; `nil` serves plain HTTP.
    package var certificates: AdminCertificates?
    /// Path of a Unix socket, made with mode 0600, on which no token is needed; `nil` for none.
    package var unixSocketPath: String?
    /// The administrator's token.
    package var token: AdminToken
    /// The other tokens; `nil` for none.
    package var tokens: TokenChecks?
    /// Unknown tokens of one address in a minute, above which it is told to wait; 1 or more.
    package var maximumFailuresPerMinute = 30
    /// Bytes of a request body, and of the PUBLISH packet that a message makes.
    package var maximumBodyBytes = 1024 * 1024
    package var maximumTopicLevels = 128
    /// Holds `{salesId}` and `{orderId}`.
    package var orderTopicTemplate = "orders/{salesId}/{orderId}/status"
    /// Holds `{salesId}`.
    package var orderChannelTemplate = "orders/{salesId}"
    /// QoS of order updates: 0, 1 or 2.
    package var orderQoS = QoS.atLeastOnce
    /// "none", "interval" or "sync", for the answers to publishers.
    package var durability: String
    /// Of this software.
    package var version: String
    package var limits = HTTPLimits()

    package init(token: AdminToken, durability: String, version: String) {
        self.token = token
        self.durability = durability
        self.version = version
    }
}

/// Where a running admin server listens.
package struct AdminEndpoints: Sendable, Equatable {
    package var address: String
    /// The port in use.
    package var port: UInt16
    /// `nil` when there is no Unix socket.
    package var unixSocketPath: String?
}

/// Why the admin server cannot start or go on.
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
