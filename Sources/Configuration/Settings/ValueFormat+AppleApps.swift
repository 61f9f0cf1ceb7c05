import BrokerAPI

extension ValueFormat where Value == [HermesConfiguration.AppleApp] {
    private typealias App = HermesConfiguration.AppleApp

    private static var most: Int { 64 }
    private static var example: String {
        "com.example.app key_file=/etc/hermes/AuthKey.p8 key_id=ABC123DEFG team_id=DEF123GHIJ"
    }

    /// Apps with their keys, as a YAML list or separated by commas.
    static var appleApps: Self {
        Self(
            expectation: "apps such as `\(example)`", absent: [],
            read: { (text: String) throws(RefusedValue) -> Value in
                var apps: Value = []
                for part in text.split(separator: ",", omittingEmptySubsequences: false) {
                    let app = try app(String(part))
                    let isTwice = apps.contains {
                        $0.bundle.utf8.elementsEqual(app.bundle.utf8)
                            && $0.environment == app.environment
                    }
                    guard !isTwice else {
                        throw RefusedValue(
                            complaint: "\(quoted(app.bundle)) stands there twice",
                            cure: "Give each app once, or once for each environment.")
                    }
                    apps.append(app)
                }
                guard apps.count <= most else {
                    throw RefusedValue(
                        complaint: "there are \(apps.count) apps, and \(most) at most",
                        cure: "Give the key of most of them as wakes.apns.key_file.")
                }
                return apps
            },
            write: { $0.map(self.text).joined(separator: ",") })
    }

    private static func app(_ text: String) throws(RefusedValue) -> App {
        let words = text.split(separator: " ").map(String.init)
        guard let bundle = words.first, Device.isBundle(bundle.utf8, for: .apns) else {
            throw RefusedValue(
                complaint: "\(quoted(text)) does not begin with the identifier of an app",
                cure: "Write such as `\(example)`.")
        }
        var parts: [String: String] = [:]
        for word in words.dropFirst() {
            let pair = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(pair[0])
            guard pair.count == 2, !pair[1].isEmpty, known.contains(name), parts[name] == nil else {
                throw RefusedValue(
                    complaint: "\(quoted(word)) is no part of the app \(quoted(bundle)), or twice",
                    cure: "Known are \(known.joined(separator: "=, "))=, each once.")
            }
            parts[name] = String(pair[1])
        }
        return App(
            bundle: bundle, environment: try environment(parts["environment"]),
            proof: try proof(parts, of: bundle))
    }

    private static var known: [String] {
        [
            "key_file", "key_id", "team_id", "certificate", "certificate_key", "password_file",
            "environment",
        ]
    }

    private static func environment(
        _ text: String?
    ) throws(RefusedValue) -> Device.Environment? {
        guard let text else { return nil }
        let named = Device.Environment.allCases.first { $0.name.utf8.elementsEqual(text.utf8) }
        guard let named else {
            throw RefusedValue(
                complaint: "environment=\(quoted(text)) is none of Apple's",
                cure: "Write production or sandbox, or leave it out for both.")
        }
        return named
    }

    private static func proof(
        _ parts: [String: String], of bundle: String
    ) throws(RefusedValue) -> HermesConfiguration.AppleProof {
        let keyParts = ["key_file", "key_id", "team_id"].map { parts[$0] }
        let (certificate, keyFile) = (parts["certificate"], parts["certificate_key"])
        if let file = keyParts[0], let keyID = keyParts[1], let teamID = keyParts[2],
            certificate == nil, keyFile == nil, parts["password_file"] == nil
        {
            return .key(
                file: file,
                keyID: try ValueFormat<String>.appleIdentifier("the key").read(keyID),
                teamID: try ValueFormat<String>.appleIdentifier("the team").read(teamID))
        }
        if let certificate, keyParts.allSatisfy({ $0 == nil }) {
            return .certificate(
                file: certificate, keyFile: keyFile, passwordFile: parts["password_file"])
        }
        throw RefusedValue(
            complaint: "the app \(quoted(bundle)) has no whole key and no certificate, or both",
            cure: "Give key_file=, key_id= and team_id=, or certificate=.")
    }

    private static func text(_ app: App) -> String {
        var words = [app.bundle]
        switch app.proof {
        case .key(let file, let keyID, let teamID):
            words += ["key_file=\(file)", "key_id=\(keyID)", "team_id=\(teamID)"]
        case .certificate(let file, let keyFile, let passwordFile):
            words.append("certificate=\(file)")
            if let keyFile { words.append("certificate_key=\(keyFile)") }
            if let passwordFile { words.append("password_file=\(passwordFile)") }
        }
        if let environment = app.environment { words.append("environment=\(environment.name)") }
        return words.joined(separator: " ")
    }
}
