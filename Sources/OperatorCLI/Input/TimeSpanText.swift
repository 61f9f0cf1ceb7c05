/// A span of time as it is written on the command line: a whole number, then a unit.
enum TimeSpanText {
    /// The seconds of a text such as `90d`; `nil` when it is no number with s, m, h or d.
    static func seconds(_ text: String) -> Int64? {
        let unit: Int64
        switch text.utf8.last {
        case UInt8(ascii: "s"): unit = 1
        case UInt8(ascii: "m"): unit = 60
        case UInt8(ascii: "h"): unit = 3_600
        case UInt8(ascii: "d"): unit = 86_400
        default: return nil
        }
        let digits = text.utf8.dropLast()
        guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }),
            let count = Int64(Substring(digits))
        else { return nil }
        let (seconds, overflows) = count.multipliedReportingOverflow(by: unit)
        return overflows ? nil : seconds
    }
}
