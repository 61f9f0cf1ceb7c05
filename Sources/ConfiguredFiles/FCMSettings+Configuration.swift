import OperatorConfiguration
import PushServices

extension FCMSettings {
    /// The sender's part of a checked configuration; `nil` when nothing is to be sent to Google.
    package init?(_ configuration: HermesConfiguration) {
        let fcm = configuration.wakes.fcm
        guard let account = fcm.account else { return nil }
        self.init(
            endpoint: ServiceEndpoint(host: fcm.endpoint.host, port: fcm.endpoint.port),
            account: account)
        apps = fcm.apps.map { App(bundle: $0.bundle, account: $0.account) }
        caFile = fcm.caFile
        connections = fcm.connections
    }
}

extension PushService {
    /// The push services of a checked configuration.
    package static func all(_ configuration: HermesConfiguration) -> [PushService] {
        [
            APNsSettings(configuration).map { .apple($0) },
            FCMSettings(configuration).map { .google($0) },
        ].compactMap { $0 }
    }
}
