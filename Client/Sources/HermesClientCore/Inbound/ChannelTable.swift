/// The windows of the channels that the app has received from; a channel beyond the limit takes the
/// place of the one that was quiet for longest.
package struct ChannelTable: Equatable, Sendable {
    package static let mostChannels = 1_000

    private struct Entry {
        var window: ChannelWindow
        /// The table's count of changes at the last change of this channel.
        var lastChange: UInt64
    }

    private var entries: [[UInt8]: Entry] = [:]
    private var changes: UInt64 = 0

    package init() {}

    package var count: Int { entries.count }

    package subscript(channel: [UInt8]) -> ChannelWindow? { entries[channel]?.window }

    /// The channels with their windows, the one that was quiet for longest first.
    package var windows: [(channel: [UInt8], window: ChannelWindow)] {
        entries.sorted { $0.value.lastChange < $1.value.lastChange }
            .map { ($0.key, $0.value.window) }
    }

    package mutating func replace(_ channel: [UInt8], _ window: ChannelWindow) {
        changes += 1
        if entries[channel] == nil, entries.count >= Self.mostChannels {
            let quietest = entries.min { $0.value.lastChange < $1.value.lastChange }
            if let quietest { entries[quietest.key] = nil }
        }
        entries[channel] = Entry(window: window, lastChange: changes)
    }

    /// Notes a message that the app has acknowledged, and the sequences that it stands for.
    package mutating func insert(_ numbers: SequenceNumbers) {
        var window = entries[numbers.channel]?.window ?? ChannelWindow(baseline: numbers.sequence)
        window.insert(numbers)
        replace(numbers.channel, window)
    }

    /// Notes that the app has been told of `count` losses, all of them up to `sequence`.
    package mutating func noteLoss(_ channel: [UInt8], upTo sequence: UInt64, count: UInt64) {
        guard var window = entries[channel]?.window else {
            // The app has acknowledged nothing of the channel yet.
            replace(channel, ChannelWindow(toldUpTo: sequence, losses: count))
            return
        }
        window.toldUpTo = max(window.toldUpTo, sequence)
        window.losses &+= count
        replace(channel, window)
    }

    /// A subscription of the channel has ended or begins anew.
    package mutating func forgetBaseline(_ channel: [UInt8]) {
        guard var window = entries[channel]?.window else { return }
        window.forgetBaseline()
        replace(channel, window)
    }

    // The count of changes tells only an order, which two equal tables share.
    package static func == (left: Self, right: Self) -> Bool {
        left.windows.elementsEqual(right.windows) {
            $0.channel == $1.channel && $0.window == $1.window
        }
    }
}
