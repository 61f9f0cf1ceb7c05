import PlainText

/// Where and how notifications go to Google's Firebase Cloud Messaging; checked before.
package struct FCMSettings: Sendable, Equatable {
    /// An app of another Firebase project.
    package struct App: Sendable, Equatable {
        package var bundle: String
        /// Path of the file of its service account.
        package var account: String

        package init(bundle: String, account: String) {
            self.bundle = bundle
            self.account = account
        }
    }

    package var endpoint: ServiceEndpoint
    /// Path of the service account's file (JSON), for the apps that are not among ``apps``.
    package var account: String
    package var apps: [App] = []
    /// A PEM file with the authorities that may have issued the services' certificates; `nil` for
    /// those that the system trusts.
    package var caFile: String?
    /// The most connections to the service.
    package var connections = 8

    package init(endpoint: ServiceEndpoint, account: String) {
        self.endpoint = endpoint
        self.account = account
    }

    /// Each file of a service account once; the first is for the apps that are not among ``apps``.
    var accounts: [String] {
        var accounts = [account]
        for app in apps where !accounts.contains(where: { $0.hasBytes(of: app.account) }) {
            accounts.append(app.account)
        }
        return accounts
    }

    /// The files that are read.
    var files: [String] { accounts + [caFile].compactMap { $0 } }

    /// Reads the files.
    func load() throws(ProviderKey.Unusable) -> FCMFiles {
        var list: [ServiceAccount] = []
        for path in accounts { list.append(try ServiceAccount.load(path: path)) }
        return FCMFiles(accounts: list, tls: try ServiceTLS(nil, caFile: caFile))
    }
}

/// The contents of the files that the settings name.
struct FCMFiles: Sendable {
    /// In the order of ``FCMSettings/accounts``.
    let accounts: [ServiceAccount]
    let tls: ServiceTLS
}
