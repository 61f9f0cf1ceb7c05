/// What a push service answered to one notification, in terms that are the same for all of them.
struct ProviderAnswer: Equatable, Sendable {
    let status: Int
    /// The service's word for it; empty for none.
    let word: String
    let meaning: AnswerMeaning
    /// The time in milliseconds after which the service may be asked again, as it says
    /// (`retry-after`); `nil` when it says none.
    var pause: UInt64?

    /// True when the connection that brought it takes no further notifications.
    var endsConnection: Bool {
        switch meaning {
        case .closing, .tooManyTokens, .otherKey: true
        case .accepted, .gone, .unknownDevice, .unfitKey, .credentials, .expiredToken, .topic,
            .busyDevice, .busyService, .service, .refused:
            false
        }
    }
}

/// What an answer is about. Most are about one device or notification; some make key, certificate or
/// app suspect, but one device alone may cause those too.
enum AnswerMeaning: Equatable, Sendable {
    case accepted
    /// The token is not active since that time (UNIX milliseconds).
    case gone(atMs: Int64?)
    /// The service does not know the token, or not for this app.
    case unknownDevice
    /// The key may not be used for this device: its environment is another one, or the device is
    /// none of ours.
    case unfitKey
    /// Key, team, account or certificate are wrong.
    case credentials
    /// The connection was opened with a token of another key.
    case otherKey
    /// The token that says who sends is too old.
    case expiredToken
    /// Too many new provider tokens: the connection is of no use for a while.
    case tooManyTokens
    /// The app is not one that these credentials may send to.
    case topic
    /// Too many notifications for this device.
    case busyDevice
    /// Too many notifications for all devices, or a service that asks for a pause.
    case busyService
    /// The service has a problem of its own, or gave no final answer.
    case service
    /// The connection ends, and has not taken the notification.
    case closing
    /// The notification itself is refused.
    case refused
}
