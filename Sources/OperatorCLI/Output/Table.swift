import PlainText

/// Aligned columns for people: a heading line and one line per row.
///
/// Cells are escaped here, so that no caller can forget it. On a terminal, the widest flexible
/// columns are cut until a row fits; elsewhere nothing is ever cut.
struct Table {
    struct Column {
        enum Alignment { case left, right }

        let title: String
        var alignment = Alignment.left
        /// True when the cells may be cut to fit a terminal.
        var isFlexible = false
        /// True when the cells name what the row is about: they are cut last.
        var isName = false
        /// The place among the columns that a narrow terminal leaves out, from 1; `nil` for a column
        /// that is always shown.
        var leaves: Int?
    }

    /// The separator between two columns.
    private static let gap = "  "
    /// The widths below which no column is cut: of names, and of the other flexible columns.
    private static let leastWidths = (name: 8, other: 4)
    /// The width up to which a name is shown whole before other columns are.
    private static let usualName = 24

    let columns: [Column]
    private var rows: [[String]] = []

    init(_ columns: [Column]) {
        self.columns = columns
    }

    /// The columns without those for which a terminal has no room while names of the usual length
    /// are shown whole.
    private func kept(_ widths: [Int], in width: Int) -> [Int] {
        var kept = Array(columns.indices)
        func least(_ index: Int) -> Int {
            guard columns[index].isFlexible else { return widths[index] }
            let most = columns[index].isName ? Self.usualName : Self.leastWidths.other
            return min(widths[index], most)
        }
        while kept.map(least).reduce(0, +) + Self.gap.count * (kept.count - 1) > width {
            let next = kept.min { (columns[$0].leaves ?? .max) < (columns[$1].leaves ?? .max) }
            guard let next, columns[next].leaves != nil else { break }
            kept.removeAll { $0 == next }
        }
        return kept
    }

    /// Adds a row with one cell per column; the cells may hold untrusted text.
    mutating func append(_ cells: [String]) {
        precondition(
            cells.count == columns.count, "\(cells.count) cells for \(columns.count) columns")
        rows.append(cells.map { VisibleText.escaped($0) })
    }

    /// The table's lines; `width` is the terminal's, `nil` cuts nothing.
    func rendered(width: Int?) -> String {
        let lines = [columns.map(\.title)] + rows
        var widths = columns.indices.map { index in
            lines.map { DisplayWidth.of($0[index]) }.max() ?? 0
        }
        guard let width else {
            return lines.map { line(of: $0, widths: widths) + "\n" }.joined()
        }
        let kept = kept(widths, in: width)
        if kept.count < columns.count {
            var narrow = Table(kept.map { columns[$0] })
            narrow.rows = rows.map { row in kept.map { row[$0] } }
            return narrow.rendered(width: width)
        }
        shrink(&widths, to: width)
        return lines.map { line(of: $0, widths: widths) + "\n" }.joined()
    }

    private func line(of cells: [String], widths: [Int]) -> String {
        var line = ""
        for (index, cell) in cells.enumerated() {
            let shown = widths[index] > 0 ? DisplayWidth.cut(cell, to: widths[index]) : ""
            let padding = String(
                repeating: " ", count: max(0, widths[index] - DisplayWidth.of(shown)))
            let isLast = index == cells.count - 1
            switch columns[index].alignment {
            case .left: line += shown + (isLast ? "" : padding)
            case .right: line += padding + shown
            }
            if !isLast { line += Self.gap }
        }
        return line
    }

    /// Narrows the widest flexible column, again and again, until the row fits or all columns are
    /// narrow; names only when nothing else can be.
    private func shrink(_ widths: inout [Int], to width: Int) {
        var excess = widths.reduce(0, +) + Self.gap.count * (columns.count - 1) - width
        for isName in [false, true] {
            let flexible = columns.indices.filter {
                columns[$0].isFlexible && columns[$0].isName == isName
            }
            let least = isName ? Self.leastWidths.name : Self.leastWidths.other
            while excess > 0, let widest = flexible.max(by: { widths[$0] < widths[$1] }),
                widths[widest] > least
            {
                widths[widest] -= 1
                excess -= 1
            }
        }
    }
}
