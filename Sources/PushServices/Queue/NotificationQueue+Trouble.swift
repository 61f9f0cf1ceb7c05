import BrokerAPI

/// What apps and services in trouble have no use for, and what is wrong with them.
extension NotificationQueue {
    /// New credentials have been read.
    mutating func forgive() { for lane in lanes.indices { lanes[lane].health.forgive() } }

    /// Gives back what apps and services in trouble have no use for. Of a service that cannot be
    /// reached one notification is kept, which says that connecting still makes sense; one of each app
    /// when there are several keys, whose services the broker does not know.
    mutating func giveBackSurplus(unreachable: [String?]) {
        for service in unreachable.indices {
            guard let reason = unreachable[service] else { continue }
            var kept = 0
            for lane in listed[service] {
                while kept + lanes[lane].waitingCount > 1, lanes[lane].waitingCount > 0,
                    let tag = firstWaiting(lane)
                {
                    end(tag, .givenBack, reason)
                }
                kept += routes.identityCount > 1 ? 0 : lanes[lane].waitingCount
            }
        }
        for service in listed.indices {
            for lane in listed[service] {
                guard let most = lanes[lane].health.most else { continue }
                while lanes[lane].held > most, lanes[lane].waitingCount > 0,
                    let tag = firstWaiting(lane)
                {
                    end(tag, .givenBack, "its app is in trouble")
                }
            }
        }
    }

    /// What the broker is to keep, as ``giveBackSurplus(unreachable:)`` would give it back.
    func limits(unreachable: [String?]) -> [WakeDemand.Limit] {
        var limits: [WakeDemand.Limit] = []
        let isForAllApps = routes.identityCount == 1
        for service in unreachable.indices where unreachable[service] != nil && isForAllApps {
            limits.append(
                WakeDemand.Limit(
                    ServiceRoutes.environment(service), bundle: nil,
                    most: max(0, 1 - heldCounts[service])))
        }
        for lane in lanes {
            let isUnreachable = !isForAllApps && unreachable[lane.app.service] != nil
            guard let most = isUnreachable ? 1 : lane.health.most else { continue }
            limits.append(
                WakeDemand.Limit(
                    ServiceRoutes.environment(lane.app.service), bundle: lane.app.bundle.string,
                    most: max(0, most - lane.held)))
        }
        return limits
    }

    /// What is wrong with apps.
    func troubles(at now: UInt64) -> [PushFigures.Trouble] {
        lanes.compactMap {
            $0.health.trouble(
                brand, bundle: $0.app.bundle.string,
                environment: ServiceRoutes.environment($0.app.service).name, at: now)
        }
    }

    /// True when notifications of any app pass, at a service that can be reached.
    func passes(unreachable: [String?], at now: UInt64) -> Bool {
        lanes.contains { unreachable[$0.app.service] == nil && $0.health.passes(at: now) }
    }

    /// Since when the oldest notification that is on a stream has had no answer; `nil` without one.
    func oldest(of service: Int) -> UInt64? {
        var oldest: UInt64?
        for tag in items.indices {
            guard case .onStream(_, let since, _)? = items[tag]?.state, let lane = items[tag]?.lane,
                lanes[lane].app.service == service
            else { continue }
            oldest = min(oldest ?? since, since)
        }
        return oldest
    }
}
