import BrokerAPI

/// One metric with all its series, as `GET /metrics` shows it.
struct MetricFamily: Sendable {
    enum Kind: String {
        /// Only grows, from the start of the process; its name ends in `_total`.
        case counter
        case gauge
    }

    /// One series; its labels tell it from the others of its family.
    struct Sample: Equatable {
        var labels: [(name: String, value: String)]
        var value: Value

        static func == (left: Self, right: Self) -> Bool {
            left.value == right.value
                && left.labels.elementsEqual(right.labels) { $0 == $1 }
        }
    }

    /// A whole number is written as one: a count above 2^53 keeps its last digit.
    enum Value: Equatable {
        case integer(UInt64)
        case real(Double)
    }

    /// With the base unit, such as `_bytes` or `_seconds`, where there is one.
    let name: String
    let kind: Kind
    let help: String
    let samples: @Sendable (BrokerFigures) -> [Sample]
}

extension MetricFamily {
    /// A family of one series without labels.
    static func counter(
        _ name: String, _ help: String, _ value: @escaping @Sendable (BrokerFigures) -> UInt64
    ) -> Self {
        Self(name: name, kind: .counter, help: help) { figures in
            [Sample(labels: [], value: .integer(value(figures)))]
        }
    }

    /// A family of one series without labels; a gauge of ours is never below 0.
    static func gauge(
        _ name: String, _ help: String, _ value: @escaping @Sendable (BrokerFigures) -> Int
    ) -> Self {
        Self(name: name, kind: .gauge, help: help) { figures in
            [Sample(labels: [], value: .integer(UInt64(max(0, value(figures)))))]
        }
    }

    /// A measured quantity.
    static func real(
        _ name: String, _ kind: Kind, _ help: String,
        _ value: @escaping @Sendable (BrokerFigures) -> Double
    ) -> Self {
        Self(name: name, kind: kind, help: help) { figures in
            [Sample(labels: [], value: .real(value(figures)))]
        }
    }

    /// A series for each case of a fixed set.
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

    /// A series for each quality of service.
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

    /// A family that is always 1 and says something in its label.
    static func information(
        _ name: String, _ label: String, _ help: String,
        _ text: @escaping @Sendable (BrokerFigures) -> String
    ) -> Self {
        Self(name: name, kind: .gauge, help: help) { figures in
            [Sample(labels: [(label, text(figures))], value: .integer(1))]
        }
    }
}
