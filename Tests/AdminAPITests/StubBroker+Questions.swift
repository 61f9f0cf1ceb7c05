import BrokerAPI

extension StubBroker.State {
    /// Answers what features are asked.
    mutating func answer(_ asked: any AskedQuestion) {
        switch asked {
        case let asked as Asked<AskReadRight>: asked.reply(.success(nil))
        case let asked as Asked<ShowReceipt>:
            asked.reply(.success(receipts[asked.question.name.text]))
        case let asked as Asked<ShowScheduled>:
            asked.reply(.success(scheduled[asked.question.name.text]))
        case let asked as Asked<ListScheduled>:
            asked.reply(.success(ScheduledPage(messages: Array(scheduled.values))))
        case let asked as Asked<ChangeScheduled>:
            asked.reply(.success(change(asked.question.name.text, asked.question.change)))
        case let asked as Asked<ShowArrivals>:
            let report = reports[asked.question.clientID]
            asked.reply(
                .success(
                    ArrivalPage(
                        total: StubBroker.arrivalTotal, clients: report.map { [$0] } ?? [])))
        case let asked as Asked<ListArrivals>:
            arrivalRequests.append(asked.question.withLosses)
            asked.reply(
                .success(
                    arrivalPages[asked.question.from]
                        ?? ArrivalPage(total: StubBroker.arrivalTotal)))
        default: answerPushes(asked)
        }
    }

    private mutating func change(_ messageID: String, _ change: ScheduledChange) -> Bool {
        switch change {
        case .cancel: return scheduled.removeValue(forKey: messageID) != nil
        case .move(let time):
            scheduled[messageID]?.deliverAtMs = time
            return scheduled[messageID] != nil
        }
    }
}
