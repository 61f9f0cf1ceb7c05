/// Settings from variables such as `HERMES_LISTENERS_0_PORT`; an empty variable means "no value".
struct EnvironmentLayer {
    static let prefix = "HERMES_"

    let variables: [String: String]
    /// Variables with the prefix `HERMES_` that other parts of Hermes read.
    let foreignNames: Set<String>

    func apply(to draft: inout ConfigurationDraft) {
        var ofListeners: [(index: Int, setting: Setting, name: String)] = []
        for name in variables.keys.sorted() where name.hasPrefix(Self.prefix) {
            if foreignNames.contains(name) || isServiceLink(name) { continue }
            if let setting = Self.singles[name] {
                assign(setting, at: 0, name, to: &draft)
            } else if let (index, setting) = Self.listenerSetting(name) {
                ofListeners.append((index, setting, name))
            } else {
                reportUnknown(name, to: &draft)
            }
        }
        // Sorted as numbers, because each listener may append the next one.
        for (index, setting, name) in ofListeners.sorted(by: { $0.index < $1.index }) {
            assignToListener(index, setting, name, in: &draft)
        }
    }

    private func assignToListener(
        _ index: Int, _ setting: Setting, _ name: String, in draft: inout ConfigurationDraft
    ) {
        let count = draft.configuration.listeners.count
        guard index <= count else {
            draft.problems.add(
                "there is no listeners[\(index - 1)], and listeners are numbered without gaps",
                cure: "Name listener \(count) next (\(setting.variable(at: count))).",
                key: setting.key(at: index), at: .environment(name))
            return
        }
        guard index < Setting.maximumListeners else {
            draft.problems.add(
                "there are more than \(Setting.maximumListeners) listeners",
                cure: "Number them 0 to \(Setting.maximumListeners - 1).",
                key: setting.key(at: index), at: .environment(name))
            return
        }
        if index == count { draft.appendListener(from: .environment(name)) }
        assign(setting, at: index, name, to: &draft)
    }

    private func assign(
        _ setting: Setting, at index: Int, _ name: String, to draft: inout ConfigurationDraft
    ) {
        let text = variables[name] ?? ""
        guard !Self.isServiceAddress(text) else {
            draft.refuse(
                setting.key(at: index),
                "\(quoted(text)) is an address that Kubernetes sets for a service of this name",
                cure: "Set enableServiceLinks: false in the pod, or rename the service.",
                from: .environment(name))
            return
        }
        draft.assign(setting, at: index, text.isEmpty ? nil : text, from: .environment(name))
    }

    private func reportUnknown(_ name: String, to draft: inout ConfigurationDraft) {
        let index = Self.listenerIndex(name) ?? 0
        let known = Setting.all.map { $0.variable(at: $0.isOfListener ? index : 0) }
        let cure =
            KeySuggestion.nearest(to: name, among: known).map { "Did you mean \($0)?" }
            ?? "Unset it. Names are \(Self.prefix) and the key in capitals, with _ for each dot."
        draft.problems.add("unknown variable", cure: cure, at: .environment(name))
    }

    /// True for variables that Kubernetes sets for a service named `hermes` or `hermes-…`:
    /// `…_SERVICE_HOST`, `…_SERVICE_PORT[_name]`, `…_PORT_1883_TCP[_ADDR|_PORT|_PROTO]`, and
    /// `…_PORT` with an address, if no setting has this name.
    private func isServiceLink(_ name: String) -> Bool {
        if name.hasSuffix("_SERVICE_HOST") || name.hasSuffix("_SERVICE_PORT")
            || name.contains("_SERVICE_PORT_")
        {
            return true
        }
        let words = name.split(separator: "_")
        for (index, word) in words.enumerated().dropLast(2) where word == "PORT" {
            let isNumber = words[index + 1].allSatisfy { ("0"..."9").contains($0) }
            if isNumber, ["TCP", "UDP", "SCTP"].contains(words[index + 2]) { return true }
        }
        return name.hasSuffix("_PORT") && Self.isServiceAddress(variables[name] ?? "")
            && Self.singles[name] == nil
    }

    private static func isServiceAddress(_ text: String) -> Bool {
        ["tcp://", "udp://", "sctp://"].contains { text.hasPrefix($0) }
    }

    private static let singles: [String: Setting] = Dictionary(
        uniqueKeysWithValues: Setting.all.filter { !$0.isOfListener }
            .map { ($0.variable(at: 0), $0) })

    private static func listenerSetting(_ name: String) -> (Int, Setting)? {
        guard let index = listenerIndex(name) else { return nil }
        return Setting.all.first { $0.isOfListener && $0.variable(at: index) == name }
            .map { (index, $0) }
    }

    /// The number in `HERMES_LISTENERS_<number>_…`; `nil` without one or if it is too long.
    private static func listenerIndex(_ name: String) -> Int? {
        let start = prefix + "LISTENERS_"
        guard name.hasPrefix(start) else { return nil }
        let digits = name.dropFirst(start.count).prefix { ("0"..."9").contains($0) }
        return digits.count <= 6 ? Int(digits) : nil
    }
}
