import BrokerAPI

extension StubBroker.State {
    /// Answers what is asked about devices.
    mutating func answerDevices(_ asked: any AskedQuestion) {
        switch asked {
        case let asked as Asked<ShowDevice>:
            asked.reply(.success(devices[asked.question.clientID]))
        case let asked as Asked<SetDevice>:
            guard !hasNoRoomForDevices else { return asked.reply(.success(.noRoom)) }
            guard ["", "Europe/Berlin"].contains(asked.question.device.timeZone) else {
                return asked.reply(.success(.unknownTimeZone))
            }
            let clientID = asked.question.clientID
            devices[clientID] = DeviceDetail(
                clientID: clientID, device: asked.question.device, wake: .none, waiting: 0)
            asked.reply(.success(.stored))
        case let asked as Asked<RemoveDevice>:
            asked.reply(.success(devices.removeValue(forKey: asked.question.clientID) != nil))
        case let asked as Asked<ListDevices>:
            var page = DevicePage()
            page.devices = devices.values.sorted { $0.clientID < $1.clientID }
            if let clientID = asked.question.clientID {
                page.devices.removeAll { $0.clientID != clientID }
            }
            asked.reply(.success(page))
        case let asked as Asked<TryWake>:
            asked.reply(.success(devices[asked.question.clientID] == nil ? nil : trial))
        case let asked as Asked<ReleaseDevice>:
            let isThere = devices[asked.question.clientID] != nil
            asked.reply(.success(isThere ? asked.question.release == .resume : nil))
        case let asked as Asked<ReleaseDevices>:
            // Two parts.
            let isFirst = asked.question.from == 0
            asked.reply(
                .success(ReleaseDevices.Answer(released: isFirst ? 2 : 1, next: isFirst ? 7 : nil)))
        default: preconditionFailure("the stub does not answer \(type(of: asked))")
        }
    }
}
