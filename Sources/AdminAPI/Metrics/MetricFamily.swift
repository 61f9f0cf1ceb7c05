import BrokerAPI
import Structures

/// One metric with all its series, for `GET /metrics`.
struct MetricFamily: Sendable {
    enum Kind: String {
        /// Counts up from the start of the process; its name ends in `_total`.
        case counter
        case gauge
        /// Series with the suffixes `_bucket`, `_sum` and `_count`.
        case histogram
    }

    /// One series, identified by its labels.
    struct Sample: Equatable {
        /// Follows the name of the family.
        var suffix = ""
        var labels: [(name: String, value: String)]
        var value: Value

        static func == (left: Self, right: Self) -> Bool {
            left.suffix == right.suffix && left.value == right.value
                && left.labels.elementsEqual(right.labels) { $0 == $1 }
        }
    }

    /// Whole numbers stay integers, because a `Double` is exact only up to 2^53.
    enum Value: Equatable {
        case integer(UInt64)
        case real(Double)
    }

    /// Ends in the base unit, such as `_bytes` or `_seconds`, if there is one.
    let name: String
    let kind: Kind
    let help: String
    let samples: @Sendable (BrokerFigures) -> [Sample]
}

extension MetricFamily {
    /// A figure of a feature.
    init(_ figure: FeatureFigure) {
        self.init(
            name: figure.name, kind: figure.kind == .counter ? .counter : .gauge, help: figure.help
        ) { _ in
            figure.counts.map { count in
                Sample(
                    labels: figure.label.map { [($0, count.label)] } ?? [],
                    value: .integer(count.value))
            }
        }
    }

    /// A counter without labels.
    static func counter(
        _ name: String, _ help: String, _ value: @escaping @Sendable (BrokerFigures) -> UInt64
    ) -> Self {
        Self(name: name, kind: .counter, help: help) { figures in
            [Sample(labels: [], value: .integer(value(figures)))]
        }
    }

    /// A gauge without labels, never negative.
    static func gauge(
        _ name: String, _ help: String, _ value: @escaping @Sendable (BrokerFigures) -> Int
    ) -> Self {
        Self(name: name, kind: .gauge, help: help) { figures in
            [Sample(labels: [], value: .integer(UInt64(max(0, value(figures)))))]
        }
    }

    /// A measured value.
    static func real(
        _ name: String, _ kind: Kind, _ help: String,
        _ value: @escaping @Sendable (BrokerFigures) -> Double
    ) -> Self {
        Self(name: name, kind: kind, help: help) { figures in
            [Sample(labels: [], value: .real(value(figures)))]
        }
    }

    /// One series for each case of a fixed set.
    static func counters(
        _ name: String, by label: String, _ help: String,
        _ counts: @escaping @Sendable (BrokerFigures) -> [BrokerFigures.Count]
    ) -> Self {
        Self(name: name, kind: .counter, help: help) { figures in
            counts(figures).map { count in
                Sample(labels: [(label, count.label)], value: .integer(count.value))
            }
        }
    }

    /// One series for each QoS.
    static func byQoS(
        _ name: String, _ help: String,
        _ counts: @escaping @Sendable (BrokerFigures) -> BrokerFigures.ByQoS
    ) -> Self {
        counters(name, by: "qos", help) { figures in
            let counts = counts(figures)
            return [
                BrokerFigures.Count("0", counts.atMostOnce),
                BrokerFigures.Count("1", counts.atLeastOnce),
                BrokerFigures.Count("2", counts.exactlyOnce),
            ]
        }
    }

    /// One histogram: its series' labels, and for each bound the number of values below it.
    struct Histogram: Sendable {
        var labels: [(name: String, value: String)]
        var cumulative: [(bound: Double, count: UInt64)]
        var count: UInt64
        var sum: Double

        init(labels: [(name: String, value: String)], _ times: TimeHistogram) {
            self.labels = labels
            cumulative = times.cumulative
            count = times.count
            sum = times.seconds
        }

        init(labels: [(name: String, value: String)], _ silence: SilenceHistogram) {
            self.labels = labels
            cumulative = silence.cumulative.map { (Double($0.bound), $0.count) }
            count = silence.count
            sum = silence.seconds
        }
    }

    /// Spans of time, with a histogram for each set of labels.
    static func times(
        _ name: String, _ help: String,
        _ histograms: @escaping @Sendable (BrokerFigures) -> [Histogram]
    ) -> Self {
        Self(name: name, kind: .histogram, help: help) { figures in
            histograms(figures).flatMap { histogram in
                let labels = histogram.labels
                let buckets = histogram.cumulative.map { bound, count in
                    Sample(
                        suffix: "_bucket", labels: labels + [("le", "\(bound)")],
                        value: .integer(count))
                }
                return buckets + [
                    Sample(
                        suffix: "_bucket", labels: labels + [("le", "+Inf")],
                        value: .integer(histogram.count)),
                    Sample(suffix: "_sum", labels: labels, value: .real(histogram.sum)),
                    Sample(suffix: "_count", labels: labels, value: .integer(histogram.count)),
                ]
            }
        }
    }

    /// A family with value 1, whose labels carry information.
    static func information(
        _ name: String, _ label: String, _ help: String,
        _ text: @escaping @Sendable (BrokerFigures) -> String
    ) -> Self {
        Self(name: name, kind: .gauge, help: help) { figures in
            [Sample(labels: [(label, text(figures))], value: .integer(1))]
        }
    }
}
