/// Numbers and foreign text as people read them.
enum Text {
    /// Control characters and everything beyond ASCII escaped; at most 80 characters.
    static func visible(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars.prefix(80) {
            result += scalar.escaped(asASCII: true)
        }
        return "\"\(result)\""
    }

    /// A number with exactly `digits` decimal places and its thousands set apart.
    static func fixed(_ value: Double, digits: Int) -> String {
        guard value.isFinite, abs(value) < 1e15 else { return "-" }
        var scale = 1.0
        for _ in 0..<digits { scale *= 10 }
        let scaled = Int64((abs(value) * scale).rounded())
        let whole = grouped(UInt64(scaled / Int64(scale)))
        let sign = value < 0 && scaled != 0 ? "-" : ""
        guard digits > 0 else { return sign + whole }
        let fraction = String(scaled % Int64(scale))
        return
            "\(sign)\(whole).\(String(repeating: "0", count: digits - fraction.count))\(fraction)"
    }

    static func grouped(_ value: UInt64) -> String {
        let digits = String(value)
        var result = ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index) % 3 == 0 { result += "," }
            result.append(digit)
        }
        return result
    }

    static func padded(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
