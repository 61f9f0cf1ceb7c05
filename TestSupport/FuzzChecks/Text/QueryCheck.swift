import RequestText

/// Any request target is split and decoded byte by byte, or refused.
///
/// An input is a target. Checked are: its parts put together are the target; items are what stands
/// between the ampersands, and decode as a decoder of ten lines does; a value that was decoded is
/// decoded again from its encoding.
enum QueryCheck {
    static func run(_ input: [UInt8], trace: ((String) -> Void)?) throws(CheckFailure) {
        let text = String(decoding: input, as: UTF8.self)
        guard let target = RequestTarget(text) else {
            trace?("\(text): no target")
            try CheckFailure.unless(text.utf8.first != 0x2F, "\(text) is refused")
            return
        }
        trace?("\(text): \(target)")
        let path = "/" + target.segments.joined(separator: "/")
        let whole = path + (target.query.map { "?" + $0 } ?? "")
        try CheckFailure.unless(
            whole.utf8.elementsEqual(text.utf8), "\(text) is put together as \(whole)")
        for segment in target.segments { try check(segment) }
        guard let query = target.query else { return }

        let items = Array(query.utf8).split(separator: UInt8(ascii: "&"))
        let found = QueryItem.split(query)
        try CheckFailure.unless(
            found.elementsEqual(items) { $0.utf8.elementsEqual($1) },
            "\(query) is split into \(found)")
        for (text, bytes) in zip(found, items) {
            let item = QueryItem(text)
            trace?("  \(text): \(String(describing: item))")
            let parts = bytes.split(
                separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            let name = decoded(parts[0])
            let value = decoded(parts.count > 1 ? parts[1] : [])
            try CheckFailure.unless(
                item.map { Array($0.name.utf8) } == (value == nil ? nil : name)
                    && item.map { Array($0.value.utf8) } == (name == nil ? nil : value),
                "\(text) is \(String(describing: item))")
        }
    }

    private static func check(_ text: Substring) throws(CheckFailure) {
        let result = percentDecoded(text)
        let expected = decoded(Array(text.utf8)[...])
        try CheckFailure.unless(
            result.map { Array($0.utf8) } == expected,
            "\(text) is decoded to \(String(describing: result))")
        guard let result else { return }
        let encoded = result.utf8.map { byte in
            "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }.joined()
        try CheckFailure.unless(
            percentDecoded(encoded[...]) == result,
            "\(encoded) is not decoded to \(result)")
    }

    /// The decoder of ten lines.
    private static func decoded(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        var rest = text
        var result: [UInt8] = []
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                result.append(byte)
                continue
            }
            let digits = String(decoding: rest.prefix(2), as: UTF8.self)
            guard digits.utf8.count == 2, !"+-".utf8.contains(digits.utf8.first ?? 0),
                let value = UInt8(digits, radix: 16)
            else { return nil }
            result.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: result, as: UTF8.self) == nil ? nil : result
    }
}
