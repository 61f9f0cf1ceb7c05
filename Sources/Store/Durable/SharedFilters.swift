import Structures

/// The shared subscriptions that queue positions in the journal came by: each text once, while a
/// position names it.
struct SharedFilters {
    /// By index; empty where none is.
    private(set) var texts: [[UInt8]] = []
    private var references: [UInt32] = []
    private var unused: [UInt32] = []
    private var indexes: [[UInt8]: UInt32] = [:]

    /// The text, empty for ``noIndex``.
    subscript(index: UInt32) -> [UInt8] { index == noIndex ? [] : texts[Int(index)] }

    /// The index of a text, for one more position.
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

    /// A position that named it is gone; ``noIndex`` names nothing.
    mutating func drop(_ index: UInt32) {
        guard index != noIndex else { return }
        references[Int(index)] -= 1
        guard references[Int(index)] == 0 else { return }
        indexes[texts[Int(index)]] = nil
        texts[Int(index)] = []
        unused.append(index)
    }
}
