/// Running totals of a message scenario.
struct LoadCounts {
    var published: UInt64 = 0
    /// Distinct messages that arrived, once per receiver.
    var delivered: UInt64 = 0
    /// Messages that are acknowledged to their publisher and were seen, or passed over, by all.
    var finished: UInt64 = 0
    var duplicates: UInt64 = 0
    /// Arrived after a later one of the same publisher.
    var outOfOrder: UInt64 = 0
    /// Of another run, or with a QoS, size or content that nobody sent.
    var foreign: UInt64 = 0
    /// For no message that waits for it.
    var strayAcknowledgements: UInt64 = 0

    var summary: String {
        "Published \(Text.grouped(published)), delivered \(Text.grouped(delivered)), "
            + "\(Text.grouped(published - finished)) under way."
    }
}
