import BrokerAPI

extension StubBroker.State {
    /// Answers the commands of tags and pushes.
    mutating func answer(_ command: BrokerCommand) {
        switch command {
        case .tags(let clientID, let reply): reply(.success(tags[clientID] ?? []))
        case .changeTags(let clientID, let added, let removed, let reply):
            reply(.success(tagChange ?? changeTags(of: clientID, added, removed)))
        case .tagList(let place, _, let reply): reply(.success(tagPages[place] ?? TagPage()))
        case .taggedClients(_, let place, _, let reply):
            reply(.success(taggedClientPages[place] ?? TaggedClientPage()))
        case .push(let request, let reply):
            if let known = repeated(request.publication) { return reply(.success(known)) }
            pushRequests.append(request)
            reply(.success(outcome(of: request)))
        case .previewPush(let target, let reply):
            previews.append(target)
            reply(.success(preview))
        case .pushStatus(let name, let reply): reply(.success(pushes[name.text]))
        case .pushList(_, _, let reply):
            reply(.success(PushPage(pushes: pushes.values.sorted { $0.pushID < $1.pushID })))
        case .cancelPush(let name, let reply):
            pushes[name.text]?.state = .cancelled
            reply(.success(pushes[name.text]))
        default: preconditionFailure("not a command of tags or pushes")
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
