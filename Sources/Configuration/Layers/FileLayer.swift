import Yams

/// Settings from one YAML file.
///
/// A problem names the line of the value it speaks of. A value that stands behind an alias is
/// reported where its anchor stands: the parser knows no other place.
struct FileLayer {
    /// The path as the operator gave it.
    let name: String

    func apply(_ bytes: [UInt8], to draft: inout ConfigurationDraft) {
        do {
            let document = try YAMLDocument(bytes: bytes)
            guard let root = document.root, !Self.isNull(root) else { return }
            guard case .mapping(let mapping) = root else {
                draft.problems.add(
                    "the file holds \(Self.shape(root)) where keys belong",
                    cure: "Begin with a key, such as `listeners:`.", at: origin(root))
                return
            }
            walk(mapping, KeyTree.root, path: "", index: 0, document, &draft)
        } catch {
            draft.problems.add(
                error.complaint, cure: error.cure, at: .file(name, line: error.line))
        }
    }

    private func walk(
        _ mapping: Node.Mapping, _ section: [String: KeyTree], path: String, index: Int,
        _ document: YAMLDocument, _ draft: inout ConfigurationDraft
    ) {
        for (key, value) in mapping {
            guard let written = key.scalar?.string else {
                draft.problems.add(
                    "\(Self.shape(key)) stands where a key belongs",
                    cure: "Write the key as one word.", key: path.isEmpty ? nil : path,
                    at: origin(key))
                continue
            }
            if let earlier = document.earlierKeys[written] {
                reportDuplicate(earlier, in: mapping, path: path, document, &draft)
                continue
            }
            let keyPath = path.isEmpty ? written : "\(path).\(written)"
            switch section[written] {
            case .value(let setting):
                assign(value, setting, index: index, key: key, &draft)
            case .section(let children):
                draft.noteSection(keyPath, from: origin(key))
                if let mapping = keys(value, keyPath, children, &draft) {
                    walk(mapping, children, path: keyPath, index: index, document, &draft)
                }
            case .list(let children):
                walkListeners(value, children, document, &draft)
            case nil:
                draft.problems.add(
                    "unknown key", cure: KeySuggestion.cure(for: written, among: section.keys),
                    key: shown(keyPath), at: origin(key))
            }
        }
    }

    private func walkListeners(
        _ value: Node, _ children: [String: KeyTree], _ document: YAMLDocument,
        _ draft: inout ConfigurationDraft
    ) {
        // All items commented out: as if the key were not there.
        if Self.isNull(value) { return }
        guard case .sequence(let items) = value else {
            draft.problems.add(
                "\(Self.shape(value)) stands where a list belongs",
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
            guard let mapping = keys(item, path, children, &draft) else { continue }
            walk(mapping, children, path: path, index: index, document, &draft)
        }
    }

    private func assign(
        _ value: Node, _ setting: Setting, index: Int, key: Node,
        _ draft: inout ConfigurationDraft
    ) {
        if setting.isList, case .sequence(let items) = value {
            // The first that is no text is complained about below, as a list within a list.
            let texts = items.compactMap(\.scalar?.string)
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
        guard case .scalar(let scalar) = value else {
            draft.refuse(
                setting.key(at: index), "\(Self.shape(value)) stands where one value belongs",
                cure: "Give \(setting.expectation).", from: origin(value))
            return
        }
        // An empty value's own mark is where the next key begins.
        let isNull = Self.isNull(value)
        draft.assign(
            setting, at: index, isNull ? nil : scalar.string, from: origin(isNull ? key : value))
    }

    /// The keys below a section, or `nil` with a problem; a section without content has none.
    private func keys(
        _ value: Node, _ path: String, _ children: [String: KeyTree],
        _ draft: inout ConfigurationDraft
    ) -> Node.Mapping? {
        if case .mapping(let mapping) = value { return mapping }
        if Self.isNull(value) { return nil }
        draft.problems.add(
            "\(Self.shape(value)) stands where keys belong",
            cure: "Give keys with values: \(children.keys.sorted().joined(separator: ", ")).",
            key: path, at: origin(value))
        return nil
    }

    private func reportDuplicate(
        _ earlier: YAMLDocument.EarlierKey, in mapping: Node.Mapping, path: String,
        _ document: YAMLDocument, _ draft: inout ConfigurationDraft
    ) {
        let last = mapping.keys.first { $0.scalar?.string == earlier.name }
        let key = path.isEmpty ? earlier.name : "\(path).\(earlier.name)"
        draft.problems.add(
            "given more than once, first in line \(earlier.line)", cure: "Keep one of them.",
            key: shown(key), at: last.map { origin($0) } ?? .file(name, line: earlier.line))
    }

    private func origin(_ node: Node) -> ConfigurationOrigin {
        .file(name, line: node.mark?.line)
    }

    /// Whether a value is absent: nothing, `~` or `null`, without quotes.
    private static func isNull(_ node: Node) -> Bool {
        guard let scalar = node.scalar, scalar.style == .plain else { return false }
        return ["", "~", "null", "Null", "NULL"].contains(scalar.string)
    }

    private static func shape(_ node: Node) -> String {
        switch node {
        case .scalar: "a single value"
        case .mapping: "a mapping of keys"
        case .sequence: "a list"
        case .alias: "an alias"
        }
    }
}
