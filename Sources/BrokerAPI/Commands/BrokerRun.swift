/// Names this run of the broker in cursors that mean nothing to the next one.
public enum BrokerRun {
    /// Eight hexadecimal digits, by chance.
    public static let name: String = {
        let digits = String(UInt32.random(in: .min ... .max), radix: 16)
        return String(repeating: "0", count: 8 - digits.utf8.count) + digits
    }()
}
