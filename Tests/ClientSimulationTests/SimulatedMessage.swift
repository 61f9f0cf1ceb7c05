import HermesClientCore

/// A payload of the simulation: fields as in an Envelope, so that the broker's stamps fit in.
struct SimulatedMessage {
    /// The broker appends the sequence and those that it supersedes with these tags.
    static let sequenceTag: UInt8 = 14 << 3
    private static let supersededTag: UInt8 = 15 << 3
    private static let numberTag: UInt8 = 8 << 3
    private static let channelTag: UInt8 = 3 << 3 | 2
    private static let nameTag: UInt8 = 1 << 3 | 2

    /// Names the message in the whole history.
    var number = 0
    var channel: [UInt8] = []
    var name: [UInt8] = []
    var sequence: UInt64 = 0
    var superseded: [UInt64] = []

    init(number: Int, channel: [UInt8] = [], name: [UInt8] = []) {
        (self.number, self.channel, self.name) = (number, channel, name)
    }

    init?(_ payload: [UInt8]) {
        var rest = payload[...]
        while let tag = rest.popFirst() {
            guard let value = Self.integer(&rest) else { return nil }
            switch tag {
            case Self.numberTag: number = Int(value)
            case Self.sequenceTag: sequence = value
            case Self.supersededTag: superseded.append(value)
            case Self.channelTag, Self.nameTag:
                guard rest.count >= value else { return nil }
                let text = Array(rest.prefix(Int(value)))
                rest.removeFirst(Int(value))
                if tag == Self.channelTag { channel = text } else { name = text }
            default: return nil
            }
        }
        if number == 0 { return nil }
    }

    var payload: [UInt8] {
        var bytes = [Self.numberTag] + Self.encoded(UInt64(number))
        if !channel.isEmpty { bytes += [Self.channelTag, UInt8(channel.count)] + channel }
        if !name.isEmpty { bytes += [Self.nameTag, UInt8(name.count)] + name }
        return bytes
    }

    var facts: MessageFacts? {
        if sequence > 0 {
            return .sequenced(
                SequenceNumbers(channel: channel, sequence: sequence, superseded: superseded))
        }
        return name.isEmpty ? nil : .named(name)
    }

    private static func encoded(_ value: UInt64) -> [UInt8] {
        var (bytes, rest): ([UInt8], UInt64) = ([], value)
        while rest > 127 {
            bytes.append(UInt8(rest & 127) | 128)
            rest >>= 7
        }
        return bytes + [UInt8(rest)]
    }

    private static func integer(_ bytes: inout ArraySlice<UInt8>) -> UInt64? {
        var (value, shift): (UInt64, UInt64) = (0, 0)
        while let byte = bytes.popFirst() {
            value |= UInt64(byte & 127) << shift
            if byte < 128 { return value }
            shift += 7
            if shift > 63 { return nil }
        }
        return nil
    }
}
