import BrokerAPI
import HermesTesting

/// The limits of a shard under test; small ones are reached often.
struct ShardSetup {
    var settings = BrokerLimits()
    let systemTopicInterval: Duration
    /// Commits complete at once.
    let isImmediate: Bool
    /// Commits complete in order, as in a journal; otherwise in any order, as the protocol
    /// ``Store`` allows.
    let completesInOrder: Bool
    let verifiesPasswords: Bool

    init(_ program: inout ByteProgram) {
        var first = OperandBits(program.byte())
        isImmediate = first.flag()
        verifiesPasswords = first.flag()
        settings.maxInFlight = first.pick([20, 1, 2, 3])
        settings.queueMessages = first.pick([1_000, 1, 3, 10])
        settings.queuePolicy = first.flag() ? .dropNewest : .dropOldest
        settings.queueBytes = first.flag() ? 200 : settings.queueBytes
        var second = OperandBits(program.byte())
        settings.maxUnacknowledgedPublishes = second.pick([1_000, 1, 2, 4])
        settings.outputBytes = second.pick([1_024 * 1_024, 64, 300, 2_000])
        settings.maxSessions = second.flag() ? 2 : settings.maxSessions
        settings.maxTopicLevels = second.flag() ? 3 : settings.maxTopicLevels
        settings.maxPacketBytes = second.flag() ? 500 : settings.maxPacketBytes
        settings.maxInboundQoS2 = second.flag() ? 2 : settings.maxInboundQoS2
        var third = OperandBits(program.byte())
        settings.maxKeepAlive = third.flag() ? .seconds(5) : nil
        settings.maxUnacknowledgedPublishBytes =
            third.flag() ? 100 : settings.maxUnacknowledgedPublishBytes
        completesInOrder = !third.flag()
        systemTopicInterval = third.pick([.zero, .zero, .zero, .seconds(10)])
    }
}

extension ShardSetup: CustomStringConvertible {
    /// For a trace.
    var description: String {
        """
        in flight \(settings.maxInFlight), queue \(settings.queueMessages) messages or \
        \(settings.queueBytes) bytes (\(settings.queuePolicy)), unacknowledged \
        \(settings.maxUnacknowledgedPublishes) or \(settings.maxUnacknowledgedPublishBytes) bytes, \
        output \(settings.outputBytes) bytes, packets \(settings.maxPacketBytes) bytes, levels \
        \(settings.maxTopicLevels), inbound QoS 2 \(settings.maxInboundQoS2), sessions \
        \(settings.maxSessions), keep alive \(settings.maxKeepAlive.map { "\($0)" } ?? "any"), \
        $SYS \(systemTopicInterval), passwords \(verifiesPasswords), immediate \
        \(isImmediate), in order \(completesInOrder)
        """
    }
}
