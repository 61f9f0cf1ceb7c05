/// Settings from the command line, unparsed: the readers of the YAML file parse them too. `nil` and
/// empty lists leave a setting unchanged.
package struct CommandLineOverrides: Sendable, Equatable {
    /// All values of `--port`, which set the number of listeners. Each takes the address of the
    /// configured listener in its place, further ones that of the first.
    package var ports: [String] = []
    /// `--data-directory`
    package var dataDirectory: String?
    /// `--max-in-flight`
    package var maxInFlight: String?
    /// `--max-packet`, in bytes or with a unit
    package var maxPacket: String?
    /// `--password-file`
    package var passwordFile: String?
    /// `--acl-file`
    package var aclFile: String?
    /// `--allow-anonymous`, for every listener
    package var allowAnonymous: Bool?
    /// `--connect-timeout`, with its unit
    package var connectTimeout: String?
    /// `--queue-messages`, in messages
    package var queueMessages: String?
    /// `--durability`
    package var durability: String?
    /// `--admin-port`
    package var adminPort: String?
    /// `--logging-level`
    package var loggingLevel: String?

    package init() {}
}

extension CommandLineOverrides {
    func apply(to draft: inout ConfigurationDraft) {
        applyPorts(to: &draft)
        if let allowAnonymous {
            for index in draft.configuration.listeners.indices {
                assign("--allow-anonymous", "\(allowAnonymous)", at: index, to: &draft)
            }
        }
        for (flag, text) in singleValues {
            if let text { assign(flag, text, at: 0, to: &draft) }
        }
    }

    private func applyPorts(to draft: inout ConfigurationDraft) {
        guard !ports.isEmpty else { return }
        guard ports.count <= Setting.maximumListeners else {
            draft.problems.add(
                "\(ports.count) ports are more than the \(Setting.maximumListeners) listeners there may be",
                cure: "Give fewer ports.", at: .flag("--port"))
            return
        }
        draft.resizeListeners(to: ports.count, from: .flag("--port"))
        for (index, port) in ports.enumerated() {
            assign("--port", port, at: index, to: &draft)
        }
    }

    private var singleValues: [(flag: String, text: String?)] {
        [
            ("--data-directory", dataDirectory),
            ("--max-in-flight", maxInFlight),
            ("--max-packet", maxPacket),
            ("--password-file", passwordFile),
            ("--acl-file", aclFile),
            ("--connect-timeout", connectTimeout),
            ("--queue-messages", queueMessages),
            ("--durability", durability),
            ("--admin-port", adminPort),
            ("--logging-level", loggingLevel),
        ]
    }

    private func assign(
        _ flag: String, _ text: String, at index: Int, to draft: inout ConfigurationDraft
    ) {
        guard let setting = Setting.all.first(where: { $0.flag == flag }) else {
            preconditionFailure("no setting names the flag \(flag)")
        }
        draft.assign(setting, at: index, text.isEmpty ? nil : text, from: .flag(flag))
    }
}
