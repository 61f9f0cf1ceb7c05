import BrokerAPI

extension StubBroker.State {
    /// Answers the commands of devices.
    mutating func answerDevices(_ command: BrokerCommand) {
        switch command {
        case .device(let clientID, let reply): reply(.success(devices[clientID]))
        case .setDevice(let clientID, let device, let reply):
            guard !hasNoRoomForDevices else { return reply(.success(false)) }
            devices[clientID] = DeviceDetail(
                clientID: clientID, device: device, wake: .none, waiting: 0)
            reply(.success(true))
        case .removeDevice(let clientID, let reply):
            reply(.success(devices.removeValue(forKey: clientID) != nil))
        case .deviceList(_, _, let reply):
            var page = DevicePage()
            page.devices = devices.values.sorted { $0.clientID < $1.clientID }
            reply(.success(page))
        case .tryWake(let clientID, let reply):
            reply(.success(devices[clientID] == nil ? nil : trial))
        default: preconditionFailure("not a command of devices")
        }
    }
}
