/// A configuration while its layers are applied: values, origin of each value, problems.
struct ConfigurationDraft {
    private(set) var configuration = HermesConfiguration()
    var problems = ProblemList()
    /// The layer that set each key last. An entry `listeners[1]` says where the list item begins.
    private(set) var origins: [String: ConfigurationOrigin] = [:]
    /// Keys with a rejected value. Rules over several keys skip them, to report a mistake once.
    private(set) var refusedKeys: Set<String> = []
    /// Keys that any layer has set, including the built-in one.
    private(set) var givenKeys: Set<String> = []

    /// Parses and stores a value. On an error it records the problem and keeps the earlier value.
    mutating func assign(
        _ setting: Setting, at index: Int = 0, _ text: String?, from origin: ConfigurationOrigin
    ) {
        let key = setting.key(at: index)
        origins[key] = origin
        if text == nil { givenKeys.remove(key) } else { givenKeys.insert(key) }
        do {
            try setting.assign(text, index, &configuration)
        } catch {
            refuse(key, error.complaint, cure: error.cure, from: origin)
        }
    }

    /// Records that a section exists, with or without content.
    mutating func noteSection(_ key: String, from origin: ConfigurationOrigin) {
        origins[key] = origin
        givenKeys.insert(key)
    }

    /// Records a problem with a key's value.
    mutating func refuse(
        _ key: String, _ complaint: String, cure: String, from origin: ConfigurationOrigin
    ) {
        refusedKeys.insert(key)
        problems.add(complaint, cure: cure, key: key, at: origin)
    }

    /// Replaces all listeners by new ones with the built-in values, as a YAML list does.
    mutating func replaceListeners(with origins: [ConfigurationOrigin]) {
        configuration.listeners = origins.map { _ in HermesConfiguration.Listener() }
        for (index, origin) in origins.enumerated() { self.origins["listeners[\(index)]"] = origin }
    }

    /// Appends a listener with the built-in values.
    mutating func appendListener(from origin: ConfigurationOrigin) {
        origins["listeners[\(configuration.listeners.count)]"] = origin
        configuration.listeners.append(HermesConfiguration.Listener())
    }

    /// Makes the list `count` long: drops the last listeners, or repeats the first.
    mutating func resizeListeners(to count: Int, from origin: ConfigurationOrigin) {
        let first = configuration.listeners.first ?? HermesConfiguration.Listener()
        while configuration.listeners.count > count { configuration.listeners.removeLast() }
        while configuration.listeners.count < count {
            let index = configuration.listeners.count
            origins["listeners[\(index)]"] = origin
            for setting in Setting.all where setting.isOfListener {
                let (key, model) = (setting.key(at: index), setting.key(at: 0))
                origins[key] = origins[model]
                if refusedKeys.contains(model) { refusedKeys.insert(key) }
                if givenKeys.contains(model) { givenKeys.insert(key) }
            }
            if givenKeys.contains("listeners[0].tls") {
                givenKeys.insert("listeners[\(index)].tls")
            }
            configuration.listeners.append(first)
        }
    }

    /// True when no value of these keys was rejected, so that a rule can compare them.
    func areUsable(_ keys: String...) -> Bool {
        keys.allSatisfy { !refusedKeys.contains($0) }
    }

    /// The origin of the first of these keys that a layer has set, for a problem's place.
    func origin(_ keys: String...) -> ConfigurationOrigin? {
        keys.lazy.compactMap { origins[$0] }.first
    }

    /// Sets limits whose default depends on another limit, unless a layer has set them.
    ///
    /// - Parameter running: The running configuration at a reload; `nil` at a start. A new
    ///   `max_packet` waits for the next start, so limits derived from it use the running value.
    mutating func deriveDefaults(running: HermesConfiguration?) {
        let maximum = configuration.limits.maxPacketBytes
        let inForce = running?.limits.maxPacketBytes ?? maximum
        if origins["limits.max_connect_packet"] == nil {
            configuration.limits.maxConnectPacketBytes = min(
                configuration.limits.maxConnectPacketBytes, maximum)
        }
        if origins["limits.queue_bytes"] == nil {
            configuration.limits.queueBytes = max(configuration.limits.queueBytes, inForce)
        }
        if origins["limits.unfinished_bytes"] == nil {
            configuration.limits.unfinishedBytes = max(
                configuration.limits.unfinishedBytes, 4 * inForce)
        }
    }
}
