/// A claim that must hold for every input. A fuzz target searches for inputs that break it, and the
/// tests replay kept inputs.
package enum FuzzCheck: String, CaseIterable, Sendable {
    /// Any bytes yield packets or ``MalformedPacket``.
    case packets
    /// Any bytes yield a header of the PROXY protocol or ``MalformedProxyHeader``.
    case proxy
    /// A TLS connection yields exactly the data that its peer sealed, in order and once.
    case records
    /// Subscriptions and retained messages match as a matcher of ten lines does.
    case topics
    /// A shard keeps its promises to several clients, whatever they and the disk do.
    case shard

    /// Checks one input; every byte string is a valid one.
    ///
    /// `trace` gets a line per step, for a person who looks for the cause of a failure.
    package func run(
        _ input: [UInt8], trace: ((String) -> Void)? = nil
    ) throws(CheckFailure) {
        switch self {
        case .packets: try PacketCheck.run(input, trace: trace)
        case .proxy: try ProxyHeaderCheck.run(input, trace: trace)
        case .records: try RecordCheck.run(input, trace: trace)
        case .topics: try TopicCheck.run(input, trace: trace)
        case .shard: try ShardCheck.run(input, trace: trace)
        }
    }
}
