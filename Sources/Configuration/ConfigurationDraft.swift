/// A configuration while its layers are applied: the values so far, who set each, what is wrong.
struct ConfigurationDraft {
    private(set) var configuration = HermesConfiguration()
    var problems = ProblemList()
    /// Who set a key last, by the key as an operator writes it. A listener's own entry
    /// (`listeners[1]`) names where its item begins.
    private(set) var origins: [String: ConfigurationOrigin] = [:]
    /// Keys with a value that was not accepted: rules over several keys pass them over, so that
    /// one mistake is reported once.
    private(set) var refusedKeys: Set<String> = []
    /// Keys that a layer gave a value, the built-in one perhaps.
    private(set) var givenKeys: Set<String> = []

    /// Reads a value into its place; a problem is kept, the earlier value stays.
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

    /// Records that a section is there, whatever it holds.
    mutating func noteSection(_ key: String, from origin: ConfigurationOrigin) {
        origins[key] = origin
        givenKeys.insert(key)
    }

    /// Records that a key's value cannot be used.
    mutating func refuse(
        _ key: String, _ complaint: String, cure: String, from origin: ConfigurationOrigin
    ) {
        refusedKeys.insert(key)
        problems.add(complaint, cure: cure, key: key, at: origin)
    }

    /// Starts the list of listeners anew, as a YAML list does, each with the built-in values.
    mutating func replaceListeners(with origins: [ConfigurationOrigin]) {
        configuration.listeners = origins.map { _ in HermesConfiguration.Listener() }
        for (index, origin) in origins.enumerated() { self.origins["listeners[\(index)]"] = origin }
    }

    /// Adds a listener with the built-in values behind the others.
    mutating func appendListener(from origin: ConfigurationOrigin) {
        origins["listeners[\(configuration.listeners.count)]"] = origin
        configuration.listeners.append(HermesConfiguration.Listener())
    }

    /// Leaves exactly `count` listeners: drops the last ones, or repeats the first.
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

    /// Whether a rule over these keys has values to judge.
    func areUsable(_ keys: String...) -> Bool {
        keys.allSatisfy { !refusedKeys.contains($0) }
    }

    /// The origin of the first key that any layer set: where to put the blame.
    func origin(_ keys: String...) -> ConfigurationOrigin? {
        keys.lazy.compactMap { origins[$0] }.first
    }

    /// Fits the limits that follow another one as long as nobody set them.
    ///
    /// - Parameter running: What a reload finds running; `nil` at a start. A new `max_packet` waits for
    ///   the next start, and what follows it while running must fit the one in force.
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
