import BrokerAPI

/// Where and how notifications are sent; checked before.
package struct APNsSettings: Sendable, Equatable {
    /// What proves who sends.
    package enum Identity: Sendable, Equatable {
        /// A key of the developer account (`.p8`), from which provider tokens are made. The token in
        /// use is kept in a file, so that a restart makes no new one.
        case key(file: String, keyID: String, teamID: String, tokenFile: String)
        /// A client certificate: a PEM file with its chain and one with its key, or one `.p12`
        /// file.
        case certificate(file: String, keyFile: String?, passwordFile: String?)
    }

    /// An app with a key or certificate of its own.
    package struct App: Sendable, Equatable {
        package var bundle: String
        /// `nil` for both.
        package var environment: Device.Environment?
        package var identity: Identity

        package init(bundle: String, environment: Device.Environment?, identity: Identity) {
            self.bundle = bundle
            self.environment = environment
            self.identity = identity
        }
    }

    package var production: ServiceEndpoint
    package var sandbox: ServiceEndpoint
    /// For the apps that are not among ``apps``.
    package var identity: Identity
    package var apps: [App] = []
    /// A PEM file with the authorities that may have issued the service's certificate; `nil` for
    /// those that the system trusts.
    package var caFile: String?
    /// The most connections to each of the two.
    package var connections = 8

    package init(production: ServiceEndpoint, sandbox: ServiceEndpoint, identity: Identity) {
        self.production = production
        self.sandbox = sandbox
        self.identity = identity
    }
}

extension APNsSettings {
    /// Each key and certificate once; the first is for the apps that are not among ``apps``.
    var identities: [Identity] {
        var identities = [identity]
        for app in apps where !identities.contains(app.identity) { identities.append(app.identity) }
        return identities
    }
}
