extension Setting {
    static let receiptSettings: [Setting] = [
        .single(
            "receipts.topics", \.receipts.topics, .topicFilters,
            "Messages published over HTTP to topics that one of them matches have receipts, unless the request says receipts: false."
        )
    ]
}

extension HermesConfiguration {
    package struct Receipts: Sendable, Equatable {
        /// Topic filters, each of 1 to 256 bytes without blanks and control characters.
        package var topics: [String] = []

        package init() {}
    }
}

extension ValueFormat where Value == [String] {
    /// Topic filters, as a YAML list or separated by commas.
    static var topicFilters: Self {
        Self(
            expectation: "a topic filter, or several with commas between them",
            absent: [],
            read: { (text: String) throws(RefusedValue) -> [String] in
                var filters: [String] = []
                for part in text.split(separator: ",", omittingEmptySubsequences: false) {
                    filters.append(try filter(String(part.trimmingPrefix { $0 == " " })))
                }
                return filters
            },
            write: { $0.joined(separator: ",") }
        )
    }

    private static func filter(_ text: String) throws(RefusedValue) -> String {
        let levels = text.split(separator: "/", omittingEmptySubsequences: false)
        let isPlain = text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }
        let areWildcardsWhole = levels.allSatisfy {
            $0 == "+" || $0 == "#" || !$0.contains { $0 == "+" || $0 == "#" }
        }
        guard (1...256).contains(text.utf8.count), isPlain, areWildcardsWhole,
            !levels.dropLast().contains("#")
        else {
            throw RefusedValue(
                complaint: "\(quoted(text)) is not a topic filter of 1 to 256 bytes",
                cure: "Give such as orders/#: + is a whole level, and # the last one.")
        }
        return text
    }
}
