/// The outcome of one measurement: a table for people and a document for scripts.
struct StoreReport {
    struct Column {
        /// The figure's name in JSON, with its unit.
        let key: String
        /// The name for people, with the unit.
        let label: String
        let digits: Int

        init(_ key: String, _ label: String, digits: Int = 0) {
            self.key = key
            self.label = label
            self.digits = digits
        }
    }

    let measurement: String
    var parameters: [(String, JSONValue)]
    let columns: [Column]
    /// A value per column; `nil` where there is nothing to say.
    private(set) var rows: [[Double?]] = []

    init(_ measurement: String, parameters: [(String, JSONValue)], columns: [Column]) {
        self.measurement = measurement
        self.parameters = parameters
        self.columns = columns
    }

    mutating func add(_ row: [Double?]) {
        precondition(row.count == columns.count, "row of \(row.count) for \(columns.count) columns")
        rows.append(row)
    }

    var table: String {
        let given = parameters.map { "\($0) \($1.text())" }.joined(separator: ", ")
        let cells = rows.map { row in
            zip(columns, row).map { column, value in
                value.map { Text.fixed($0, digits: column.digits) } ?? "-"
            }
        }
        let widths = columns.indices.map { index in
            cells.reduce(columns[index].label.count) { max($0, $1[index].count) }
        }
        let lines = ([columns.map(\.label)] + cells).map { line in
            zip(line, widths)
                .map { String(repeating: " ", count: $1 - $0.count) + $0 }
                .joined(separator: "  ")
        }
        return (["\(measurement): \(given)"] + lines).joined(separator: "\n")
    }

    var json: JSONValue {
        .object([
            ("measurement", .string(measurement)),
            ("parameters", .object(parameters)),
            (
                "results",
                .array(
                    rows.map { row in
                        .object(
                            zip(columns, row).map { ($0.key, $1.map(JSONValue.number) ?? .null) })
                    })
            ),
        ])
    }

    /// Prints the table, and writes the document if a path is given.
    func publish(json path: String?) throws(BenchFailure) {
        print(table)
        if let path { try json.write(to: path) }
    }
}
