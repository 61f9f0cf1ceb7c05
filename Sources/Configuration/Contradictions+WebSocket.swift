/// Rules over a listener's `protocol` and its `websocket` section.
extension ConfigurationDraft {
    /// Rejects what is said about WebSocket on a listener that does not speak it.
    mutating func checkWebSocket() {
        for index in configuration.listeners.indices
        where configuration.listeners[index].transport == .mqtt {
            let section = "listeners[\(index)].websocket"
            guard
                areUsable("listeners[\(index)].protocol", "\(section).path", "\(section).origins"),
                let key = ["\(section).path", "\(section).origins", section].first(
                    where: givenKeys.contains)
            else { continue }
            problems.add(
                "it has no effect on a listener that does not speak WebSocket",
                cure: "Set protocol: websocket, or delete the key.",
                key: key, at: origin(key, "listeners[\(index)]"))
        }
    }
}
