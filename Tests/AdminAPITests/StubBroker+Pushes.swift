import BrokerAPI

extension StubBroker.State {
    /// Answers what is asked about tags and pushes.
    mutating func answerPushes(_ asked: any AskedQuestion) {
        switch asked {
        case let asked as Asked<ShowTags>:
            asked.reply(.success(tags[asked.question.clientID] ?? []))
        case let asked as Asked<ChangeTags>:
            let question = asked.question
            asked.reply(
                .success(
                    tagChange ?? changeTags(of: question.clientID, question.add, question.remove)))
        case let asked as Asked<ListTags>:
            asked.reply(.success(tagPages[asked.question.from] ?? TagPage()))
        case let asked as Asked<ListTaggedClients>:
            asked.reply(.success(taggedClientPages[asked.question.from] ?? TaggedClientPage()))
        case let asked as Asked<StartPush>:
            let request = asked.question.request
            if let known = repeated(request.publication) { return asked.reply(.success(known)) }
            pushRequests.append(request)
            asked.reply(.success(outcome(of: request)))
        case let asked as Asked<PreviewPush>:
            previews.append(asked.question.target)
            asked.reply(.success(preview))
        case let asked as Asked<ShowPush>:
            asked.reply(.success(pushes[asked.question.name.text]))
        case let asked as Asked<ListPushes>:
            let sorted = pushes.values.sorted { $0.pushID < $1.pushID }
            asked.reply(.success(PushPage(pushes: sorted)))
        case let asked as Asked<CancelPush>:
            let name = asked.question.name.text
            pushes[name]?.state = .cancelled
            asked.reply(.success(pushes[name]))
        default: answerDevices(asked)
        }
    }

    private mutating func changeTags(
        of clientID: String, _ added: [String], _ removed: [String]
    ) -> TagChange {
        let now = Set(tags[clientID] ?? []).union(added).subtracting(removed).sorted()
        tags[clientID] = now
        return .changed(now)
    }

    private func outcome(of request: PushRequest) -> PublishOutcome {
        if hasReceiptsOff, !request.publication.receiptID.isEmpty { return .receiptsAreOff }
        return pushOutcome ?? .scheduled(deliverAtMs: request.deliverAtMs ?? 7)
    }
}

extension OwnedName {
    /// The identifier as text.
    var text: String { String(decoding: name, as: UTF8.self) }
}
