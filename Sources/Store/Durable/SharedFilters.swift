import Structures

/// The shared subscriptions by which queued messages of the journal came. Each text is stored once,
/// as long as a position refers to it.
struct SharedFilters {
    /// By index; empty where the index is unused.
    private(set) var texts: [[UInt8]] = []
    private var references: [UInt32] = []
    private var unused: [UInt32] = []
    private var indexes: [[UInt8]: UInt32] = [:]

    /// The text at an index; empty for ``noIndex``.
    subscript(index: UInt32) -> [UInt8] { index == noIndex ? [] : texts[Int(index)] }

    /// The index of a text, with one more reference.
    mutating func take(_ text: [UInt8]) -> UInt32 {
        if let index = indexes[text] {
            references[Int(index)] += 1
            return index
        }
        let index: UInt32
        if let free = unused.popLast() {
            index = free
            texts[Int(index)] = text
            references[Int(index)] = 1
        } else {
            index = UInt32(texts.count)
            texts.append(text)
            references.append(1)
        }
        indexes[text] = index
        return index
    }

    /// Drops one reference; does nothing for ``noIndex``.
    mutating func drop(_ index: UInt32) {
        guard index != noIndex else { return }
        references[Int(index)] -= 1
        guard references[Int(index)] == 0 else { return }
        indexes[texts[Int(index)]] = nil
        texts[Int(index)] = []
        unused.append(index)
    }
}
