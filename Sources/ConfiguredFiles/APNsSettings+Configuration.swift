import PushServices
import OperatorConfiguration

extension APNsSettings {
    /// The sender's part of a checked configuration; `nil` when nothing is to be sent to Apple.
    package init?(_ configuration: HermesConfiguration) {
        let apns = configuration.wakes.apns
        let tokens = "\(configuration.dataDirectory)/apns"
        let identity: Identity
        if let file = apns.keyFile, let keyID = apns.keyID, let teamID = apns.teamID {
            identity = .key(
                file: file, keyID: keyID, teamID: teamID,
                tokenFile: "\(tokens).token")
        } else if let certificate = apns.certificate {
            identity = .certificate(
                file: certificate, keyFile: apns.certificateKey,
                passwordFile: apns.certificatePasswordFile)
        } else {
            return nil
        }
        self.init(
            production: ServiceEndpoint(host: apns.production.host, port: apns.production.port),
            sandbox: ServiceEndpoint(host: apns.sandbox.host, port: apns.sandbox.port),
            identity: identity)
        apps = apns.apps.map { app in
            App(
                bundle: app.bundle, environment: app.environment,
                identity: Self.identity(of: app.proof, unless: identity, tokens))
        }
        caFile = apns.caFile
        connections = apns.connections
    }

    /// What proves an app; each key has a file for its token, and none has two.
    private static func identity(
        of proof: HermesConfiguration.AppleProof, unless other: Identity, _ tokens: String
    ) -> Identity {
        switch proof {
        case .certificate(let file, let keyFile, let passwordFile):
            return .certificate(file: file, keyFile: keyFile, passwordFile: passwordFile)
        case .key(let file, let keyID, let teamID):
            if case .key(file, keyID, teamID, _) = other { return other }
            return .key(
                file: file, keyID: keyID, teamID: teamID,
                tokenFile: "\(tokens)-\(teamID)-\(keyID).token")
        }
    }
}
