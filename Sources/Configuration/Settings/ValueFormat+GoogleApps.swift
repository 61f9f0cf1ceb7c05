import BrokerAPI

extension ValueFormat where Value == [HermesConfiguration.GoogleApp] {
    private typealias App = HermesConfiguration.GoogleApp

    private static var most: Int { 64 }
    private static var part: String { "service_account=" }
    private static var example: String {
        "com.example.other service_account=/etc/hermes/other.json"
    }

    /// Apps with their service accounts, as a YAML list or separated by commas.
    static var googleApps: Self {
        Self(
            expectation: "apps such as `\(example)`", absent: [],
            read: { (text: String) throws(RefusedValue) -> Value in
                var apps: Value = []
                for part in text.split(separator: ",", omittingEmptySubsequences: false) {
                    let app = try app(String(part))
                    guard !apps.contains(where: { $0.bundle.utf8.elementsEqual(app.bundle.utf8) })
                    else {
                        throw RefusedValue(
                            complaint: "\(quoted(app.bundle)) stands there twice",
                            cure: "Give each app once.")
                    }
                    apps.append(app)
                }
                guard apps.count <= most else {
                    throw RefusedValue(
                        complaint: "there are \(apps.count) apps, and \(most) at most",
                        cure: "Give the account of most of them as wakes.fcm.service_account.")
                }
                return apps
            },
            write: { $0.map { "\($0.bundle) \(part)\($0.account)" }.joined(separator: ",") })
    }

    private static func app(_ text: String) throws(RefusedValue) -> App {
        let words = text.split(separator: " ").map(String.init)
        guard let bundle = words.first, Device.isBundle(bundle.utf8, for: .fcm) else {
            throw RefusedValue(
                complaint: "\(quoted(text)) does not begin with the package name of an app",
                cure: "Write such as `\(example)`.")
        }
        guard words.count == 2, words[1].hasPrefix(part), words[1].utf8.count > part.utf8.count
        else {
            throw RefusedValue(
                complaint: "the app \(quoted(bundle)) needs \(part), once, and nothing else",
                cure: "Write such as `\(example)`.")
        }
        return App(bundle: bundle, account: String(words[1].dropFirst(part.count)))
    }
}
