import Credentials

/// A claim that must hold for every input. A fuzz target searches for inputs that break it, and the
/// tests replay kept inputs.
package enum FuzzCheck: String, CaseIterable, Sendable {
    /// Any bytes yield packets or ``MalformedPacket``.
    case packets
    /// Any bytes yield packets of MQTT 5.0 or ``PacketFault``, as a slow decoder finds; messages are
    /// sent on with what a server passes on.
    case packets5
    /// Any bytes yield a header of the PROXY protocol or ``MalformedProxyHeader``.
    case proxy
    /// A client's frames of WebSocket yield exactly its data, and any bytes are a request or a flaw.
    case websocket
    /// A TLS connection yields exactly the data that its peer sealed, in order and once.
    case records
    /// Subscriptions and retained messages match as a matcher of ten lines does.
    case topics
    /// Any bytes are one JSON text or an error at a place within them.
    case json
    /// Any target of a request is split and decoded byte by byte, or refused.
    case query
    /// A stream is split into the same lines in whatever pieces it comes.
    case lines
    /// Any bytes are a configuration or a list of its mistakes.
    case yaml
    /// Any bytes are access rules or a list of malformed lines; rules decide as a matcher of thirty
    /// lines does.
    case acl
    /// Any bytes are a file of users or a list of malformed lines.
    case passwords
    /// Any bytes are a file of tokens or a list of malformed lines.
    case tokens
    /// Any bytes are a token of a login that is refused with a reason, unless a key has signed them.
    case logins
    /// Any bytes are an answer of a login service or none; a question is JSON of what is asked.
    case answers
    /// A shard keeps its promises to several clients, whatever they and the disk do.
    case shard
    /// A client keeps its promises whatever a broker sends, and in whatever pieces that comes.
    case client
    /// The sender to Apple keeps its promises whatever a server sends over HTTP/2.
    case apple

    /// Checks one input; every byte string is a valid one.
    ///
    /// `trace` gets a line per step, for a person who looks for the cause of a failure.
    package func run(
        _ input: [UInt8], trace: ((String) -> Void)? = nil
    ) throws(CheckFailure) {
        switch self {
        case .packets: try PacketCheck.run(input, trace: trace)
        case .packets5: try PacketCheck5.run(input, trace: trace)
        case .proxy: try ProxyHeaderCheck.run(input, trace: trace)
        case .websocket: try WebSocketCheck.run(input, trace: trace)
        case .records: try RecordCheck.run(input, trace: trace)
        case .topics: try TopicCheck.run(input, trace: trace)
        case .json: try JSONCheck.run(input, trace: trace)
        case .query: try QueryCheck.run(input, trace: trace)
        case .lines: try LineCheck.run(input, trace: trace)
        case .yaml: try ConfigurationCheck.run(input, trace: trace)
        case .acl: try AccessRulesCheck.run(input, trace: trace)
        case .passwords: try LineFileCheck<PasswordLines>.run(input, trace: trace)
        case .tokens: try LineFileCheck<TokenLines>.run(input, trace: trace)
        case .logins: try LoginTokenCheck.run(input, trace: trace)
        case .answers: try ServiceAnswerCheck.run(input, trace: trace)
        case .shard: try ShardCheck.run(input, trace: trace)
        case .client: try ClientCheck.run(input, trace: trace)
        case .apple: try AppleCheck.run(input, trace: trace)
        }
    }
}
