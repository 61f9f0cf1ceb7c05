import BrokerAPI

/// Builds the configuration from its layers; a later layer wins.
///
/// built-in values -> YAML file -> environment -> command line
///
/// Reads only the file. The environment is passed in, so that reloads and tests control it.
package struct ConfigurationLoader: Sendable {
    /// The source of the file layer.
    package enum Source: Sendable, Equatable {
        /// No file layer.
        case none
        /// Path of a YAML file.
        case file(String)
        /// Text in place of a file; `name` appears in problems.
        case text(String, name: String)

        /// The file; `nil` without one.
        package var path: String? {
            if case .file(let path) = self { path } else { nil }
        }
    }

    package var source: Source
    /// All variables of the process; those without the prefix `HERMES_` are ignored.
    package var environment: [String: String]
    package var overrides: CommandLineOverrides
    /// Values that were given to the running broker, by key; they win over all layers.
    package var runTime: [String: String] = [:]
    /// Variables with the prefix that are no settings; other parts of Hermes read them.
    package var foreignVariables: Set<String>

    /// Creates a loader; without arguments only the built-in values apply.
    package init(
        source: Source = .none,
        environment: [String: String] = [:],
        overrides: CommandLineOverrides = CommandLineOverrides(),
        foreignVariables: Set<String> = [
            AdminTokenPlace.variable, "HERMES_FAILPOINT", "HERMES_JOURNAL_SEGMENT_BYTES",
        ]
    ) {
        self.source = source
        self.environment = environment
        self.overrides = overrides
        self.foreignVariables = foreignVariables
    }

    /// Reads and validates all layers.
    ///
    /// - Parameter running: The running configuration at a reload; `nil` at a start.
    /// - Returns: The validated configuration.
    /// - Throws: `ConfigurationError` with the problems of all layers.
    package func load(
        whileRunning running: HermesConfiguration? = nil
    ) throws(ConfigurationError) -> HermesConfiguration {
        try read(whileRunning: running).configuration
    }

    /// As ``load(whileRunning:)``, with the layer that each value comes from.
    package func read(
        whileRunning running: HermesConfiguration? = nil
    ) throws(ConfigurationError) -> (configuration: HermesConfiguration, origins: EffectiveSettings)
    {
        var draft = ConfigurationDraft()
        applySource(to: &draft)
        EnvironmentLayer(variables: environment, foreignNames: foreignVariables).apply(to: &draft)
        overrides.apply(to: &draft)
        for setting in Setting.all where !setting.isOfListener {
            guard let text = runTime[setting.pattern] else { continue }
            draft.assign(setting, text, from: .runTime)
        }
        draft.deriveDefaults(running: running)
        draft.checkContradictions()
        if var error = draft.problems.error {
            error.format = draft.configuration.logging.format
            throw error
        }
        return (draft.configuration, EffectiveSettings(draft))
    }

    private func applySource(to draft: inout ConfigurationDraft) {
        switch source {
        case .none:
            break
        case .text(let text, let name):
            FileLayer(name: name).apply(Array(text.utf8), to: &draft)
        case .file(let path):
            do {
                FileLayer(name: path).apply(try ConfigurationFile.read(path), to: &draft)
            } catch {
                draft.problems.add(
                    error.complaint, cure: error.cure, at: .file(path, line: nil))
            }
        }
    }
}
