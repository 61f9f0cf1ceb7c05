import Addresses
import BrokerAPI

extension HermesConfiguration {
    /// How phones are woken; the rules are in ``limits``.
    package struct Wakes: Sendable, Equatable {
        package var apns = APNs()
        package var fcm = FCM()
        /// A receiver of wakes for other phones.
        package var webhook = Webhook()

        package init() {}
    }

    /// Apple's push service.
    package struct APNs: Sendable, Equatable {
        /// The key of the developer account; set with its two identifiers.
        package var keyFile: String?
        package var keyID: String?
        package var teamID: String?
        /// A certificate instead: PEM with its key in another file, or `.p12`.
        package var certificate: String?
        package var certificateKey: String?
        package var certificatePasswordFile: String?
        /// Apps with a key or certificate of their own.
        package var apps: [AppleApp] = []
        package var production = HostAndPort(host: "api.push.apple.com", port: 443)
        package var sandbox = HostAndPort(host: "api.sandbox.push.apple.com", port: 443)
        /// PEM file with authorities; `nil` for those that the system trusts.
        package var caFile: String?
        /// The most connections to each of the two.
        package var connections = 8

        package init() {}

        /// True when notifications are to be sent.
        package var isOn: Bool { keyFile != nil || certificate != nil }
    }

    /// Google's Firebase Cloud Messaging.
    package struct FCM: Sendable, Equatable {
        /// The file of a service account; `nil`: nothing is sent.
        package var account: String?
        /// Apps of other projects.
        package var apps: [GoogleApp] = []
        package var endpoint = HostAndPort(host: "fcm.googleapis.com", port: 443)
        /// PEM file with authorities; `nil` for those that the system trusts.
        package var caFile: String?
        /// The most connections.
        package var connections = 8

        package init() {}
    }

    /// An app with a service account of its own.
    package struct GoogleApp: Sendable, Equatable {
        package var bundle: String
        package var account: String
    }

    /// An app with a key or a certificate of its own.
    package struct AppleApp: Sendable, Equatable {
        package var bundle: String
        /// `nil` for both.
        package var environment: Device.Environment?
        package var proof: AppleProof
    }

    /// What proves to Apple who sends.
    package enum AppleProof: Sendable, Equatable {
        case key(file: String, keyID: String, teamID: String)
        case certificate(file: String, keyFile: String?, passwordFile: String?)
    }

    /// A host and its TCP port.
    package struct HostAndPort: Sendable, Equatable {
        package var host: String
        package var port: UInt16
    }
}
