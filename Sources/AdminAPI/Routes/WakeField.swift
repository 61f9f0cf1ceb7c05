import BrokerAPI
import PlainText

extension JSONFields {
    /// `wake`: whether the message wakes phones; left out, `wakes.rules` say.
    func wake() throws(Problem) -> WakeRequest {
        guard let text = try string("wake") else { return .byRules }
        guard let request = WakeRequest(word: text) else {
            throw wrong("wake", WakeRequest.fault(of: text), fix: WakeRequest.cure)
        }
        return request
    }
}

extension QueryItems {
    /// `wake`: whether the message wakes phones; left out, `wakes.rules` say.
    func wake() throws(Problem) -> WakeRequest {
        guard let text = self["wake"] else { return .byRules }
        guard let request = WakeRequest(word: text) else {
            throw Problem(
                .invalidQuery, "The query parameter wake \(WakeRequest.fault(of: text)).",
                field: "wake", fix: WakeRequest.cure)
        }
        return request
    }
}

extension WakeRequest {
    fileprivate static var cure: String { "Leave it out to have wakes.rules say." }

    fileprivate init?(word: String) {
        guard let request = WakeRequest.named.first(where: { word.hasBytes(of: $0.name) }) else {
            return nil
        }
        self = request
    }

    fileprivate static func fault(of text: String) -> String {
        "is \"\(text.visible())\"; it must be alert, background or none"
    }
}
