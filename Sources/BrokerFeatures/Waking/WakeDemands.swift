import BrokerAPI
import BrokerCore

/// What the senders take of the wakes that are owed, by kind of device.
struct WakeDemands {
    private struct Demand {
        var most: Int
        /// Wakes that the sender takes of an environment, and of one app in it; without an entry as
        /// many as there are.
        var ofEnvironment: [Device.Environment: Int] = [:]
        var ofLane: [OwedWakes.LaneKey: Int] = [:]
        /// `nil` once it has been called.
        var take: (@Sendable ([Wake]) -> Void)?
        let withdraw: @Sendable ([HandOut]) -> Void
    }

    private var demands: [Device.Kind: Demand] = [:]

    /// Keeps a demand in place of an earlier one of the same kind. `bundle` finds the place of an
    /// app's name.
    mutating func set(_ kind: Device.Kind, _ demand: WakeDemand, bundle: (String) -> UInt32?) {
        var kept = Demand(most: demand.most, take: demand.take, withdraw: demand.withdraw)
        if demand.most <= 0 { kept.take = nil }
        for limit in demand.limits {
            if let name = limit.bundle {
                // An app without a device is owed nothing.
                guard let place = bundle(name) else { continue }
                let key = OwedWakes.LaneKey(
                    kind: kind, environment: limit.environment, bundle: place)
                kept.ofLane[key] = limit.most
            } else {
                kept.ofEnvironment[limit.environment] = limit.most
            }
        }
        demands[kind] = kept
    }

    /// The most wakes that a sender takes now; `nil` when none asks.
    func most(_ kind: Device.Kind) -> Int? {
        demands[kind].flatMap { $0.take == nil ? nil : $0.most }
    }

    /// The most wakes of a lane that its sender takes now.
    func most(of lane: OwedWakes.LaneKey) -> Int {
        guard let demand = demands[lane.kind], demand.take != nil else { return 0 }
        return min(
            demand.most, demand.ofEnvironment[lane.environment] ?? .max,
            demand.ofLane[lane] ?? .max)
    }

    /// Counts a wake that is handed out.
    mutating func count(_ lane: OwedWakes.LaneKey) {
        if let most = demands[lane.kind]?.ofEnvironment[lane.environment] {
            demands[lane.kind]?.ofEnvironment[lane.environment] = most - 1
        }
        if let most = demands[lane.kind]?.ofLane[lane] {
            demands[lane.kind]?.ofLane[lane] = most - 1
        }
    }

    /// Answers a demand, which is none any more.
    mutating func answer(_ kind: Device.Kind, _ wakes: [Wake]) {
        demands[kind]?.take?(wakes)
        demands[kind]?.take = nil
    }

    /// Tells a sender that a hand-out is of no use any more.
    func withdraw(_ kind: Device.Kind, _ handOut: HandOut) { demands[kind]?.withdraw([handOut]) }
}
