import BrokerAPI

/// Formats figures for Prometheus (text format 0.0.4, "Exposition formats"): for each metric its
/// help, its type, and one line per series.
enum MetricsText {
    static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    static func render(_ figures: BrokerFigures) -> String {
        var text = ""
        text.reserveCapacity(16 * 1_024)
        for family in MetricFamily.all + figures.features.map({ MetricFamily($0) }) {
            let samples = family.samples(figures)
            // A family may be empty, such as that of the certificate.
            if samples.isEmpty { continue }
            text += "# HELP \(family.name) \(escaped(family.help, quotes: false))\n"
            text += "# TYPE \(family.name) \(family.kind.rawValue)\n"
            for sample in samples {
                text += "\(family.name)\(sample.suffix)\(labels(sample)) \(number(sample.value))\n"
            }
        }
        return text
    }

    private static func labels(_ sample: MetricFamily.Sample) -> String {
        guard !sample.labels.isEmpty else { return "" }
        let pairs = sample.labels.map { "\($0.name)=\"\(escaped($0.value, quotes: true))\"" }
        return "{\(pairs.joined(separator: ","))}"
    }

    private static func number(_ value: MetricFamily.Value) -> String {
        switch value {
        case .integer(let value): "\(value)"
        case .real(let value): "\(value)"
        }
    }

    private static func escaped(_ text: String, quotes: Bool) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\"" where quotes: result += "\\\""
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
