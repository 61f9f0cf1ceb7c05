/// Settings from one YAML file.
///
/// A problem names the line of its value; for an alias the parser knows only its anchor's line.
struct FileLayer {
    /// The path as the operator gave it.
    let name: String

    func apply(_ bytes: [UInt8], to draft: inout ConfigurationDraft) {
        do {
            let document = try YAMLDocument(bytes: bytes)
            guard let root = document.root, !root.isNull else { return }
            guard case .mapping(let entries) = root.content else {
                draft.problems.add(
                    "the file holds \(root.shape) where keys belong",
                    cure: "Begin with a key, such as `listeners:`.", at: origin(root))
                return
            }
            walk(entries, KeyTree.root, path: "", index: 0, &draft)
        } catch {
            draft.problems.add(
                error.complaint, cure: error.cure, at: .file(name, line: error.line))
        }
    }

    private func walk(
        _ entries: [YAMLNode.Entry], _ section: [String: KeyTree], path: String, index: Int,
        _ draft: inout ConfigurationDraft
    ) {
        for entry in entries {
            let (key, value) = (entry.key, entry.value)
            guard let written = key.text else {
                draft.problems.add(
                    "\(key.shape) stands where a key belongs",
                    cure: "Write the key as one word.", key: path.isEmpty ? nil : path,
                    at: origin(key))
                continue
            }
            let keyPath = path.isEmpty ? written : "\(path).\(written)"
            if let last = entry.lineOfLast {
                draft.problems.add(
                    "given more than once, first in line \(key.line)", cure: "Keep one of them.",
                    key: shown(keyPath), at: .file(name, line: last))
                continue
            }
            switch section[written] {
            case .value(let setting):
                assign(value, setting, index: index, key: key, &draft)
            case .section(let children):
                draft.noteSection(keyPath, from: origin(key))
                if let entries = keys(value, keyPath, children, &draft) {
                    walk(entries, children, path: keyPath, index: index, &draft)
                }
            case .list(let children):
                walkListeners(value, children, &draft)
            case nil:
                draft.problems.add(
                    "unknown key", cure: KeySuggestion.cure(for: written, among: section.keys),
                    key: shown(keyPath), at: origin(key))
            }
        }
    }

    private func walkListeners(
        _ value: YAMLNode, _ children: [String: KeyTree], _ draft: inout ConfigurationDraft
    ) {
        // All items are commented out, as if the key were absent.
        if value.isNull { return }
        guard case .sequence(let items) = value.content else {
            draft.problems.add(
                "\(value.shape) stands where a list belongs",
                cure: "Begin each listener with a dash, such as `- port: 1883`.",
                key: "listeners", at: origin(value))
            return
        }
        guard !items.isEmpty, items.count <= Setting.maximumListeners else {
            draft.problems.add(
                items.isEmpty
                    ? "the list is empty, and a broker without a listener serves nobody"
                    : "the list holds \(items.count) listeners, more than \(Setting.maximumListeners)",
                cure: items.isEmpty
                    ? "Add one, or delete the key to listen on 127.0.0.1:1883."
                    : "Delete some.",
                key: "listeners", at: origin(value))
            return
        }
        draft.replaceListeners(with: items.map { origin($0) })
        for (index, item) in items.enumerated() {
            let path = "listeners[\(index)]"
            guard let entries = keys(item, path, children, &draft) else { continue }
            walk(entries, children, path: path, index: index, &draft)
        }
    }

    private func assign(
        _ value: YAMLNode, _ setting: Setting, index: Int, key: YAMLNode,
        _ draft: inout ConfigurationDraft
    ) {
        if setting.isList, case .sequence(let items) = value.content {
            // The loop below reports the first item that is not text.
            let texts = items.compactMap(\.text)
            if texts.count == items.count, !texts.isEmpty {
                guard !texts.contains(where: { $0.contains(",") }) else {
                    draft.refuse(
                        setting.key(at: index), "an item of the list holds a comma",
                        cure: "Make two items of it, or rename the file.", from: origin(value))
                    return
                }
                draft.assign(
                    setting, at: index, texts.joined(separator: ","), from: origin(value))
                return
            }
        }
        guard let text = value.text else {
            draft.refuse(
                setting.key(at: index), "\(value.shape) stands where one value belongs",
                cure: "Give \(setting.expectation).", from: origin(value))
            return
        }
        // The parser places an empty value at the next key, so its own key gives the line.
        draft.assign(
            setting, at: index, value.isNull ? nil : text,
            from: origin(value.isNull ? key : value))
    }

    /// The keys of a section, none without content; `nil` with a problem if it is no mapping.
    private func keys(
        _ value: YAMLNode, _ path: String, _ children: [String: KeyTree],
        _ draft: inout ConfigurationDraft
    ) -> [YAMLNode.Entry]? {
        if case .mapping(let entries) = value.content { return entries }
        if value.isNull { return nil }
        draft.problems.add(
            "\(value.shape) stands where keys belong",
            cure: "Give keys with values: \(children.keys.sorted().joined(separator: ", ")).",
            key: path, at: origin(value))
        return nil
    }

    private func origin(_ node: YAMLNode) -> ConfigurationOrigin {
        .file(name, line: node.line)
    }
}
