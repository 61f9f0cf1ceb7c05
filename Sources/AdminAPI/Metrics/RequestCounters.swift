import BrokerAPI
import Structures
import Synchronization

/// Counts the answered requests of each route and their times, for any thread. The routes are known
/// from the beginning, so that no caller can add a series.
final class RequestCounters: Sendable {
    private struct Entry {
        let method: String
        let route: String
        /// Answers by the first digit of their status, from 2 to 5; 3 is never used.
        var answers: [UInt64] = [0, 0, 0, 0]
        var times = TimeHistogram()
    }

    /// The routes in the order of their numbers, and behind them the requests without one.
    private let entries = Mutex([Entry(method: "other", route: "other")])

    /// Sets the routes, before the first request.
    func begin(_ routes: [Route]) {
        let known = routes.map { Entry(method: $0.method.rawValue, route: $0.path) }
        entries.withLock { $0 = known + $0 }
    }

    /// Counts an answer. `route` is the place of the route among all; `nil` without a route.
    func count(route: Int?, status: Int, after span: Duration) {
        let microseconds = UInt64(max(0, span / .microseconds(1)))
        entries.withLock { entries in
            let place = route ?? entries.count - 1
            entries[place].answers[min(max(status / 100, 2), 5) - 2] += 1
            entries[place].times.add(microseconds: microseconds)
        }
    }

    var figures: [AdminFigures.Requests] {
        entries.withLock { $0 }.map { entry in
            AdminFigures.Requests(
                method: entry.method, route: entry.route,
                answers: [2, 4, 5].map { BrokerFigures.Count("\($0)xx", entry.answers[$0 - 2]) },
                times: entry.times)
        }
    }
}
