/// How a push service is named to operators, and what they can do about its refusals.
enum ServiceBrand: Sendable {
    case apple, google

    var name: String {
        switch self {
        case .apple: "Apple"
        case .google: "Google"
        }
    }

    /// The part of the configuration that is about it.
    var section: String {
        switch self {
        case .apple: "wakes.apns"
        case .google: "wakes.fcm"
        }
    }

    /// What an operator sees to when the service is not reached.
    var reachHint: String {
        switch self {
        case .apple:
            "see that this machine reaches the service, that wakes.apns.ca_file fits, and that Apple takes the key or the certificate"
        case .google:
            "see that this machine reaches the service, that wakes.fcm.ca_file fits, that Google takes the service account, and that this machine's clock is right"
        }
    }

    /// Why nothing passes, with the service's word for it.
    func reason(_ cause: AppHealth.Cause, _ word: String) -> String {
        switch (cause, self) {
        case (.credentials, .apple), (.unfitKey, .apple):
            "Apple refuses the key or the certificate (\(word))"
        case (.credentials, .google): "Google refuses the service account (\(word))"
        case (.unfitKey, .google):
            "Google says that the tokens are of another project than the service account (\(word))"
        case (.expiredToken, .apple):
            "Apple takes the provider token no more, and a new one can be made later only, since this one is young (\(word))"
        case (.expiredToken, .google): "Google does not take the access token (\(word))"
        case (.tooManyTokens, _):
            "\(name) has seen too many new provider tokens of this team (\(word))"
        case (.topic, .apple): "Apple refuses the app (\(word))"
        case (.topic, .google):
            "Google has no valid credentials of its own for the app's push service (\(word))"
        case (.busy, _): "\(name) asks for a pause (\(word))"
        }
    }

    func hint(_ cause: AppHealth.Cause) -> String {
        switch (cause, self) {
        case (.credentials, .apple):
            "compare wakes.apns.key_id, team_id and key_file with Apple's developer site, and this machine's clock with another one"
        case (.credentials, .google):
            "has the service account of wakes.fcm.service_account the role for Firebase Cloud Messaging in its project, and is that API on?"
        case (.unfitKey, .apple):
            "see on Apple's developer site which environments and apps the key may be used for"
        case (.unfitKey, .google):
            "give the app a line in wakes.fcm.apps with the service account of its project"
        case (.expiredToken, .apple), (.tooManyTokens, .google):
            "set this machine's clock; use one key and one broker for a team"
        case (.expiredToken, .google):
            "set this machine's clock, and see on Google's console that the key of the service account is not deleted"
        case (.tooManyTokens, .apple): "use one key and one broker for a team, and wait"
        case (.topic, .apple):
            "is this the app's bundle identifier, and is the key or the certificate of its team? Wakes are kept, and told once Apple takes them"
        case (.topic, .google):
            "give the Firebase project the app's key for Apple's or the web's push service. Wakes are kept, and told once Google takes them"
        case (.busy, _):
            "it goes on by itself; if that is often so, ask for a larger quota, or spread what is sent"
        }
    }

    /// An alarm about devices that the service does not know.
    var unknownHint: String {
        switch self {
        case .apple:
            "are these tokens of the other environment, or of another app? Devices say which in their registration; their wakes wait until they register again"
        case .google:
            "are these tokens of another app, or of a test? Their wakes wait until they register again"
        }
    }
}
