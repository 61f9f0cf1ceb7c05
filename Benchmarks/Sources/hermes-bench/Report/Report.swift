/// The outcome of one scenario: a table for people and a document for scripts.
struct Report {
    /// One figure.
    struct Metric {
        /// The figure's name in JSON, with its unit.
        let key: String
        /// The name for people, with the unit.
        let label: String
        let text: String
        let value: JSONValue
    }

    let scenario: String
    let address: BrokerAddress
    let process: BrokerProcess?
    var parameters: [(String, JSONValue)] = []
    private(set) var metrics: [Metric] = []

    init(_ scenario: String, _ address: BrokerAddress, _ process: BrokerProcess?) {
        self.scenario = scenario
        self.address = address
        self.process = process
    }

    mutating func add(_ key: String, _ label: String, _ value: Double, digits: Int) {
        metrics.append(
            Metric(
                key: key, label: label, text: Text.fixed(value, digits: digits),
                value: .number(value)))
    }

    mutating func add(_ key: String, _ label: String, count: UInt64) {
        metrics.append(
            Metric(
                key: key, label: label, text: Text.grouped(count), value: .integer(Int64(count))))
    }

    /// A span that is `nil` when nothing was measured, in microseconds.
    mutating func add(_ key: String, _ label: String, nanoseconds: UInt64?) {
        guard let nanoseconds else { return }
        add(key, label, Double(nanoseconds) / 1e3, digits: 1)
    }

    var table: String {
        let width = metrics.map(\.label.count).max() ?? 0
        let valueWidth = metrics.map(\.text.count).max() ?? 0
        var lines = [heading]
        for metric in metrics {
            let gap = String(repeating: " ", count: valueWidth - metric.text.count)
            lines.append("  \(Text.padded(metric.label, to: width))  \(gap)\(metric.text)")
        }
        return lines.joined(separator: "\n")
    }

    var json: JSONValue {
        .object([
            ("scenario", .string(scenario)),
            (
                "broker",
                .object([
                    ("address", .string(address.description)),
                    ("pid", process.map { .integer(Int64($0.identifier)) } ?? .null),
                    ("program", process.map { .string($0.name) } ?? .null),
                ])
            ),
            ("parameters", .object(parameters)),
            ("results", .object(metrics.map { ($0.key, $0.value) })),
        ])
    }

    private var heading: String {
        let broker = process.map { "\($0.name) (\($0.identifier)) at \(address)" } ?? "\(address)"
        let given = parameters.map { name, value in
            if case .array(let values) = value {
                return "\(name) \(values.map { $0.text() }.joined(separator: "/"))"
            }
            return "\(name) \(value.text())"
        }
        return "\(scenario), \(broker): \(given.joined(separator: ", "))"
    }
}
