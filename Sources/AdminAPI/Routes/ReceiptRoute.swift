import BrokerAPI
import Credentials
import Hummingbird
import PlainText

extension Route {
    /// `GET /v1/messages/{id}`: what became of a message that was published with receipts.
    static func receipt(_ broker: any BrokerControl) -> Route {
        Route(method: .get, path: "/v1/messages/{id}", access: .reading(.filtered)) {
            request throws(Problem) in
            let messageID = request.parameter("id")
            let name = request.owned(messageID)
            let receipt = try await broker.ask(ShowReceipt(name: name))
            guard let receipt, request.maySee(receipt.topic) else {
                throw Problem.unknownReceipt(messageID)
            }
            return try Response.json(receipt)
        }
    }
}

extension Problem {
    fileprivate static func unknownReceipt(_ messageID: String) -> Problem {
        Problem(
            .receiptNotFound,
            "There is no receipt of a message \"\(messageID.visible())\".", field: "id",
            fix: "Publish it with \"receipts\": true; receipts are kept for 24 hours, or shorter "
                + "when there are more than limits.receipts.")
    }
}

extension Publisher {
    /// Gives a message its identifier. Has its receivers followed by it, if the caller wants it;
    /// without a word of the caller, if its topic says so.
    func follow(_ publication: inout Publication, _ isWanted: Bool?, _ id: MessageID) {
        publication.messageID = Array(id.text.utf8)
        if isWanted ?? receiptTopics.contains(where: { $0.matches(publication.topic) }) {
            publication.receiptID = publication.messageID
        }
    }
}
