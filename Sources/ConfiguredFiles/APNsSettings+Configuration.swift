import APNs
import OperatorConfiguration

extension APNsSettings {
    /// The sender's part of a checked configuration; `nil` when nothing is to be sent to Apple.
    package init?(_ configuration: HermesConfiguration) {
        let apns = configuration.wakes.apns
        let identity: Identity
        if let file = apns.keyFile, let keyID = apns.keyID, let teamID = apns.teamID {
            identity = .key(
                file: file, keyID: keyID, teamID: teamID,
                tokenFile: "\(configuration.dataDirectory)/apns.token")
        } else if let certificate = apns.certificate {
            identity = .certificate(
                file: certificate, keyFile: apns.certificateKey,
                passwordFile: apns.certificatePasswordFile)
        } else {
            return nil
        }
        self.init(
            production: Endpoint(host: apns.production.host, port: apns.production.port),
            sandbox: Endpoint(host: apns.sandbox.host, port: apns.sandbox.port),
            identity: identity)
        caFile = apns.caFile
        connections = apns.connections
    }
}
