import Glibc

/// Searches by bytes, which keep the scans of all sources short: regular expressions see only the
/// lines that hold one of their words.
extension Substring {
    func has(_ word: StaticString) -> Bool { offset(of: word) != nil }

    func has(anyOf words: [StaticString]) -> Bool { words.contains { has($0) } }

    /// The line without its comment.
    var code: Substring {
        guard let offset = offset(of: "//") else { return self }
        return prefix(upTo: utf8.index(startIndex, offsetBy: offset))
    }

    private func offset(of word: StaticString) -> Int? {
        let count = word.utf8CodeUnitCount
        let found = utf8.withContiguousStorageIfAvailable { line -> Int? in
            guard let base = UnsafeRawPointer(line.baseAddress) else { return nil }
            var offset = 0
            while offset + count <= line.count,
                let first = memchr(base + offset, Int32(word.utf8Start[0]), line.count - offset)
            {
                offset = UnsafeRawPointer(first) - base
                guard offset + count <= line.count else { return nil }
                if memcmp(first, word.utf8Start, count) == 0 { return offset }
                offset += 1
            }
            return nil
        }
        return found ?? nil
    }
}
