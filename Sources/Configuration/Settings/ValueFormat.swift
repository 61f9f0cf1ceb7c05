/// A rejected value: the complaint and advice.
struct RefusedValue: Error, Hashable {
    /// The complaint without a full stop; the value in it is escaped.
    let complaint: String
    /// Advice in whole sentences.
    let cure: String
}

/// The text format of a setting's value: its parser, its formatter and its description.
struct ValueFormat<Value: Sendable>: Sendable {
    /// Completes the sentence "Give …." and the column of values in the documentation.
    let expectation: String
    /// The value of a key that is set to nothing; `nil` when the key needs a value.
    var absent: Value?
    let read: @Sendable (String) throws(RefusedValue) -> Value
    /// Formats a value as text that `read` accepts.
    let write: @Sendable (Value) -> String

    /// Adds `nil`, written as an empty value or as `word`.
    func optional(_ word: String? = nil) -> ValueFormat<Value?> {
        ValueFormat<Value?>(
            expectation: word.map { "\(expectation), or \($0)" } ?? expectation,
            absent: .some(nil),
            read: { (text: String) throws(RefusedValue) -> Value? in
                if text == word { return nil }
                do throws(RefusedValue) {
                    return try read(text)
                } catch {
                    guard let word else { throw error }
                    throw RefusedValue(
                        complaint: error.complaint,
                        cure: "\(error.cure) Or \(word).")
                }
            },
            write: { value in value.map(write) ?? word ?? "" }
        )
    }
}

extension ValueFormat {
    /// Adds `nil`, written as `off`; an empty value is rejected.
    func orOff() -> ValueFormat<Value?> {
        let format = optional("off")
        return ValueFormat<Value?>(
            expectation: format.expectation, read: format.read, write: format.write)
    }

    /// Adds `nil` for a key that nobody sets; an empty value is rejected, as it would lift a
    /// protection.
    func orUnset() -> ValueFormat<Value?> {
        ValueFormat<Value?>(
            expectation: expectation,
            read: { (text: String) throws(RefusedValue) -> Value? in try read(text) },
            write: { value in value.map(write) ?? "" }
        )
    }
}

extension ValueFormat where Value == Int {
    /// A number of bytes, optionally with KiB, MiB or GiB.
    static func size(_ range: ClosedRange<Int>) -> Self {
        let bounds = "\(Quantity.size(range.lowerBound)) to \(Quantity.size(range.upperBound))"
        return Self(
            expectation: "\(bounds) (bytes, or a number with KiB, MiB or GiB)",
            read: { (text: String) throws(RefusedValue) -> Int in
                try Quantity.sizeUnits.read(text, in: range, bounds: bounds)
            },
            write: { Quantity.size($0) }
        )
    }
}

extension ValueFormat where Value == Duration {
    /// A time with its unit.
    static func duration(_ range: ClosedRange<Duration>) -> Self {
        let milliseconds =
            Quantity.milliseconds(range.lowerBound)...Quantity.milliseconds(range.upperBound)
        let bounds =
            "\(Quantity.duration(range.lowerBound)) to \(Quantity.duration(range.upperBound))"
        return Self(
            expectation: "\(bounds) (a number with ms, s, m, h or d)",
            read: { (text: String) throws(RefusedValue) -> Duration in
                .milliseconds(
                    try Quantity.durationUnits.read(text, in: milliseconds, bounds: bounds))
            },
            write: { Quantity.duration($0) }
        )
    }

    /// Adds 0, which needs no unit and means off.
    func orZero() -> Self {
        Self(
            expectation: "0, or \(expectation)",
            read: { (text: String) throws(RefusedValue) -> Duration in
                let digits = text.prefix { $0 == "0" }
                let unit = text.dropFirst(digits.count)
                let isZero =
                    !digits.isEmpty
                    && (unit.isEmpty
                        || Quantity.durationUnits.factors.contains { $0.name == unit })
                if isZero { return .zero }
                do throws(RefusedValue) {
                    return try read(text)
                } catch {
                    throw RefusedValue(complaint: error.complaint, cure: "\(error.cure) Or 0.")
                }
            },
            write: { $0 == .zero ? "0" : write($0) }
        )
    }
}

extension ValueFormat where Value: FixedWidthInteger {
    /// A whole number in decimal digits; the type holds all of `range`.
    static func number(_ range: ClosedRange<Value>, noun: String? = nil) -> Self {
        let expectation = "\(range.lowerBound) to \(range.upperBound)"
        return Self(
            expectation: expectation,
            read: { (text: String) throws(RefusedValue) -> Value in
                Value(
                    try Quantity.wholeNumber(
                        text, in: Int(range.lowerBound)...Int(range.upperBound), noun: noun,
                        expectation: expectation))
            },
            write: { "\($0)" }
        )
    }
}

extension ValueFormat where Value == Bool {
    static var boolean: Self {
        Self(
            expectation: "true or false",
            read: { (text: String) throws(RefusedValue) -> Bool in
                switch text {
                case "true", "True", "TRUE": return true
                case "false", "False", "FALSE": return false
                default:
                    throw RefusedValue(
                        complaint: "\(quoted(text)) is neither true nor false",
                        cure: "Give true or false.")
                }
            },
            write: { "\($0)" }
        )
    }
}

extension ValueFormat
where Value: RawRepresentable & CaseIterable, Value.RawValue == String {
    /// One of the words of an enumeration.
    static func word(noun: String) -> Self {
        let words = Value.allCases.map(\.rawValue)
        let expectation = words.dropLast().joined(separator: ", ") + " or " + (words.last ?? "")
        return Self(
            expectation: expectation,
            read: { (text: String) throws(RefusedValue) -> Value in
                if let value = Value(rawValue: text) { return value }
                throw RefusedValue(
                    complaint: "\(quoted(text)) is not \(noun)", cure: "Give \(expectation).")
            },
            write: { $0.rawValue }
        )
    }
}
