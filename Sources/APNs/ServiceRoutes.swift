import BrokerAPI
import PlainText

/// Which connections take a notification: each key or certificate has its own to both of Apple's
/// services, since one connection may carry the tokens of one team only.
///
/// A service is a number: twice that of the identity, and one more for the sandbox.
struct ServiceRoutes {
    private struct App: Hashable {
        let bundle: ForeignText
        let environment: Device.Environment
    }

    /// The first is for apps that none is given for.
    let identities: [APNsSettings.Identity]
    private var identityOfApp: [App: Int] = [:]

    init(_ settings: APNsSettings) {
        var identities = [settings.identity]
        // What is said for one environment goes before what is said for both.
        let general = settings.apps.filter { $0.environment == nil }
        for app in general + settings.apps.filter({ $0.environment != nil }) {
            let place = identities.firstIndex(of: app.identity) ?? identities.count
            if place == identities.count { identities.append(app.identity) }
            let environments = app.environment.map { [$0] } ?? Device.Environment.allCases
            for environment in environments {
                let key = App(bundle: ForeignText(app.bundle), environment: environment)
                identityOfApp[key] = place
            }
        }
        self.identities = identities
    }

    var serviceCount: Int { 2 * identities.count }

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
        guard identities.count > 1 else { return "" }
        switch identities[Self.identity(service)] {
        case .key(_, let keyID, _, _): return " with the key \(keyID)"
        case .certificate(let file, _, _):
            return " with the certificate \(VisibleText.quoted(file))"
        }
    }
}
