import BrokerAPI

/// The client's device, and the wake that it is owed.
extension Explanation {
    func device(_ detail: ClientDetail) -> [String] {
        guard let device = detail.device else { return [] }
        var line: String
        switch device.wake {
        case "waiting" where wakeObstacle != nil, "ready" where wakeObstacle != nil,
            "sent" where wakeObstacle != nil:
            line =
                "Its device is owed a notification for \(count(device.waiting)), which goes out "
                + "later: \(wakeObstacle ?? "") (hermesctl devices status)"
        case "none": line = "Its device (\(device.kind)) is owed no notification"
        case "watched":
            line =
                "Its device is woken if \(messages(device.waiting)) not acknowledged for long "
                + "(wakes.unanswered)"
        case "waiting":
            line =
                "Its device is woken for \(count(device.waiting)) in a while (wakes.merge, "
                + "wakes.reconnect_window)"
        case "ready":
            line =
                "Its device is to be woken for \(count(device.waiting)), and no sender has taken "
                + "that yet (hermesctl devices status)"
        case "sent":
            line =
                "A notification for \(count(device.waiting)) is with its sender, which "
                + "has no answer yet"
        case "set_aside":
            line =
                "Its device gets no notifications, because the push service refuses it, until it "
                + "registers again"
        default: line = "Its device: \(device.wake)"
        }
        line += "."
        if let outcome = device.lastOutcome, let time = device.lastAnsweredAtMs {
            let reason = device.lastReason.map { " (\($0))" } ?? ""
            line += " The last one was \(Self.words(ofWake: outcome))\(reason) \(ago(time))."
        }
        return [line]
    }

    static func words(ofWake outcome: String) -> String {
        switch outcome {
        case "accepted": "taken by the push service"
        case "gone": "refused, as the app is gone"
        case "bad_device": "refused, as the device is not known"
        case "later": "put off"
        case "refused": "refused"
        default: outcome
        }
    }

    private func count(_ messages: Int) -> String {
        messages == 1 ? "1 message" : "\(messages) messages"
    }
}
