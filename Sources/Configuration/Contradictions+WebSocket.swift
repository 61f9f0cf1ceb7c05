/// Rules over a listener's `protocol` and its `websocket` section.
extension ConfigurationDraft {
    mutating func checkWebSocket() {
        checkWebSocketIsSpoken()
        checkTokensOfRequests()
    }

    /// Rejects tokens that nobody would verify. A password of the file belongs in no URL.
    private mutating func checkTokensOfRequests() {
        for (index, listener) in configuration.listeners.enumerated()
        where listener.transport == .webSocket && listener.webSocket.token != .none {
            let key = "listeners[\(index)].websocket.token"
            let auth = configuration.auth
            guard !auth.jwt.isOn, !auth.http.isOn,
                areUsable(
                    key, "listeners[\(index)].protocol", "auth.http.url", "auth.jwt.key_file",
                    "auth.jwt.secret_file", "auth.jwt.jwks_file", "auth.jwt.jwks_url")
            else { continue }
            problems.add(
                "nobody verifies the tokens that requests may bring",
                cure: "Set up auth.jwt or auth.http, or delete the key.", key: key,
                at: origin(key))
        }
    }

    /// Rejects what is said about WebSocket on a listener that does not speak it.
    private mutating func checkWebSocketIsSpoken() {
        for index in configuration.listeners.indices
        where configuration.listeners[index].transport == .mqtt {
            let section = "listeners[\(index)].websocket"
            let keys = ["path", "origins", "token"].map { "\(section).\($0)" }
            guard areUsable("listeners[\(index)].protocol"), keys.allSatisfy({ areUsable($0) }),
                let key = (keys + [section]).first(where: givenKeys.contains)
            else { continue }
            problems.add(
                "it has no effect on a listener that does not speak WebSocket",
                cure: "Set protocol: websocket, or delete the key.",
                key: key, at: origin(key, "listeners[\(index)]"))
        }
    }
}
