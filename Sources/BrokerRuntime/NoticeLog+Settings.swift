import BrokerAPI
import BrokerCore
import Logging
import Transport

/// The keys of the configuration that lines name.
extension NoticeLog {
    /// The keys of limits, or why there are none.
    static func settings(_ limits: Limit...) -> Logger.MetadataValue {
        "\(limits.map { setting($0) }.joined(separator: ", "))"
    }

    /// The key that raises the limit which ended a connection, or that would have let it begin.
    static func setting(_ reason: CloseReason) -> String? {
        if case .proxyHeader = reason { return "listeners[].proxy_from" }
        if case .webSocket(let flaw) = reason { return setting(WebSocketFlaw(rawValue: flaw)) }
        return reason.limit.map { setting($0) }
    }

    /// The key that decides about a request for WebSocket or a frame; `nil` for other flaws.
    private static func setting(_ flaw: WebSocketFlaw?) -> String? {
        switch flaw {
        case .path: "listeners[].websocket.path"
        case .origin: "listeners[].websocket.origins"
        case .token, .severalTokens: "listeners[].websocket.token"
        case .frameTooLong: "limits.max_packet"
        default: nil
        }
    }

    static func setting(_ limit: Limit) -> String {
        switch limit {
        case .unsubscribeFilters: "none: an UNSUBSCRIBE has \(Shard.maxUnsubscribeFilters) filters"
        case .openFiles: "the open files limit (ulimit -n)"
        case .sharedFilter: "none: a shared subscription has the form $share/group/filter"
        case .subscribeFilters:
            """
            none: of one SUBSCRIBE, \(SubscribeRefusals.maxFilters) filters are looked at, and none \
            behind \(SubscribeRefusals.maxRefusals) refused ones, or behind a look at \
            \(SubscribeRefusals.maxRuleSteps) access rules
            """
        default: limit.key ?? "none: \(limit.name)"
        }
    }
}
