/// The difference between the running configuration and one that a reload has read.
package struct ConfigurationChange: Sendable {
    /// The running configuration with the new values of all reloadable keys.
    package let configuration: HermesConfiguration
    /// Changed keys that take effect at once, such as `limits.max_in_flight`.
    package let applied: [String]
    /// Changed keys that take effect at the next start, such as `listeners[0].port`.
    package let deferred: [String]

    /// Compares two validated configurations.
    package init(from running: HermesConfiguration, to read: HermesConfiguration) {
        var configuration = running
        var applied: [String] = []
        var deferred: [String] = []
        let commonListeners = min(running.listeners.count, read.listeners.count)
        for setting in Setting.all {
            for index in 0..<(setting.isOfListener ? commonListeners : 1)
            where setting.show(running, index) != setting.show(read, index) {
                if setting.isReloadable {
                    setting.copy(read, index, &configuration)
                    applied.append(setting.key(at: index))
                } else {
                    deferred.append(setting.key(at: index))
                }
            }
        }
        if running.listeners.count != read.listeners.count { deferred.append("listeners") }
        self.configuration = configuration
        self.applied = applied
        self.deferred = deferred
    }
}
