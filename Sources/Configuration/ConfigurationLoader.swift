/// Builds the configuration from its layers; the later one wins.
///
/// built-in values -> YAML file -> environment -> command line
///
/// Nothing of the process is read but the file: the environment is a value, so that a reload and
/// a test see what they are given.
package struct ConfigurationLoader: Sendable {
    /// Where the settings that belong in a file come from.
    package enum Source: Sendable, Equatable {
        /// The built-in values alone.
        case none
        /// A YAML file, by its path.
        case file(String)
        /// Text that stands for a file of that name.
        case text(String, name: String)
    }

    package var source: Source
    /// All variables of the process; only those that begin with `HERMES_` are looked at.
    package var environment: [String: String]
    package var overrides: CommandLineOverrides
    /// Variables with our prefix that are no settings and that other parts of Hermes read.
    package var foreignVariables: Set<String>

    /// Takes the layers; by default there are none and the built-in values hold.
    package init(
        source: Source = .none,
        environment: [String: String] = [:],
        overrides: CommandLineOverrides = CommandLineOverrides(),
        foreignVariables: Set<String> = [
            "HERMES_ADMIN_TOKEN", "HERMES_FAILPOINT", "HERMES_JOURNAL_SEGMENT_BYTES",
        ]
    ) {
        self.source = source
        self.environment = environment
        self.overrides = overrides
        self.foreignVariables = foreignVariables
    }

    /// Reads and checks everything.
    ///
    /// - Parameter running: The configuration that a reload is to change; `nil` at a start.
    /// - Returns: What counts, all of it checked.
    /// - Throws: `ConfigurationError` with all problems of all layers, for people to read.
    package func load(
        whileRunning running: HermesConfiguration? = nil
    ) throws(ConfigurationError) -> HermesConfiguration {
        var draft = ConfigurationDraft()
        applySource(to: &draft)
        EnvironmentLayer(variables: environment, foreignNames: foreignVariables).apply(to: &draft)
        overrides.apply(to: &draft)
        draft.deriveDefaults(running: running)
        draft.checkContradictions()
        if let error = draft.problems.error { throw error }
        return draft.configuration
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
