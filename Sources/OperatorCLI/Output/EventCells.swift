import BrokerAPI

/// What happened to a client, as columns of a table: all of its tables look the same.
enum EventCells {
    static var columns: [Table.Column] {
        [
            .init(title: "WHAT"), .init(title: "REASON"),
            .init(title: "COUNT", alignment: .right), .init(title: "FROM"),
            .init(title: "USER", isFlexible: true), .init(title: "TOPIC", isFlexible: true),
        ]
    }

    static func cells(_ event: ClientEvent) -> [String] {
        [
            event.kind.rawValue.replacing("_", with: " "), event.reason, "\(event.count)",
            event.address ?? Wording.absent, event.userName ?? Wording.absent,
            event.topic ?? Wording.absent,
        ]
    }

    static func time(_ event: ClientEvent, now: Int64) -> String {
        Wording.age(of: event.lastMs, now: now) + " ago"
    }
}
