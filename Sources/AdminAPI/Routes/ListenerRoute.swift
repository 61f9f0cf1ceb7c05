import BrokerAPI
import Hummingbird

extension Route {
    /// `GET /v1/listeners`: where MQTT clients connect, and how. Does not ask the data plane.
    static func listeners(_ listeners: [ListenerModel]) -> Route {
        Route(method: .get, path: "/v1/listeners", access: .reading(.untouched)) {
            _ throws(Problem) in
            try Response.json(ListenerList(listeners: listeners))
        }
    }
}
