import BrokerAPI
import PlainText

/// Which connections take a notification: each key, certificate or service account has its own, to both
/// of Apple's services, since one connection may carry the tokens of one team only.
///
/// A service is a number: twice that of the identity, and one more for Apple's sandbox or for Google's
/// token service.
struct ServiceRoutes {
    private struct App: Hashable {
        let bundle: ForeignText
        let environment: Device.Environment
    }

    /// Names of keys and certificates for operators; the first is for apps that none is given for.
    private let names: [String]
    private var identityOfApp: [App: Int] = [:]

    init(_ settings: APNsSettings) {
        let identities = settings.identities
        names = identities.map {
            switch $0 {
            case .key(_, let keyID, _, _): " with the key \(keyID)"
            case .certificate(let file, _, _):
                " with the certificate \(VisibleText.quoted(file))"
            }
        }
        // What is said for one environment goes before what is said for both.
        let general = settings.apps.filter { $0.environment == nil }
        for app in general + settings.apps.filter({ $0.environment != nil }) {
            let environments = app.environment.map { [$0] } ?? Device.Environment.allCases
            for environment in environments {
                let key = App(bundle: ForeignText(app.bundle), environment: environment)
                identityOfApp[key] = identities.firstIndex(of: app.identity) ?? 0
            }
        }
    }

    init(_ settings: FCMSettings) {
        let accounts = settings.accounts
        names = accounts.map { " with the service account \(VisibleText.quoted($0))" }
        for app in settings.apps {
            let key = App(bundle: ForeignText(app.bundle), environment: .production)
            identityOfApp[key] = accounts.firstIndex { $0.hasBytes(of: app.account) } ?? 0
        }
    }

    /// Keys and certificates.
    var identityCount: Int { names.count }

    var serviceCount: Int { 2 * identityCount }

    func service(of bundle: String, in environment: Device.Environment) -> Int {
        let identity =
            identityOfApp.isEmpty
            ? 0 : identityOfApp[App(bundle: ForeignText(bundle), environment: environment)] ?? 0
        return 2 * identity + (environment == .production ? 0 : 1)
    }

    static func environment(_ service: Int) -> Device.Environment {
        service % 2 == 0 ? .production : .sandbox
    }

    static func identity(_ service: Int) -> Int { service / 2 }

    /// Names the key or certificate of a service, if there are several.
    func name(_ service: Int) -> String {
        identityCount > 1 ? names[Self.identity(service)] : ""
    }
}
