import BrokerAPI
import PlainText

/// The client's devices, and the wakes that they are owed.
extension Explanation {
    func devices(_ detail: ClientDetail) -> [String] {
        (detail.devices ?? []).map { sentence($0, isOnly: detail.devices?.count == 1) }
    }

    private func sentence(_ device: DeviceModel, isOnly: Bool) -> String {
        let obstacle = wakeObstacle(device)
        let its =
            device.name.map { "Its device \(VisibleText.quoted($0))" }
            ?? (isOnly ? "Its device" : "Its device without a name")
        var line: String
        switch device.wake {
        case "waiting" where obstacle != nil, "ready" where obstacle != nil,
            "sent" where obstacle != nil:
            line =
                "\(its) is owed a notification for \(count(device.waiting)), which goes out "
                + "later: \(obstacle ?? "") (hermesctl devices status)"
        case "none": line = "\(its) (\(device.kind)) is owed no notification"
        case "watched":
            line =
                "\(its) is woken if \(messages(device.waiting)) not acknowledged for long "
                + "(wakes.unanswered)"
        case "waiting":
            line =
                "\(its) is woken for \(count(device.waiting)) in a while (wakes.merge, "
                + "wakes.reconnect_window)"
        case "held":
            let end = device.heldUntilMs.map {
                " for \(Spans.span(seconds: max(1, ($0 - now) / 1_000)))"
            }
            line =
                "\(its) is woken for \(count(device.waiting)) later: quiet hours or a cap hold that "
                + "back\(end ?? "") (wakes.quiet_hours, wakes.cap)"
        case "ready":
            line =
                "\(its) is to be woken for \(count(device.waiting)), and no sender has taken "
                + "that yet (hermesctl devices status)"
        case "sent":
            line =
                (isOnly ? "A" : "\(its): a")
                + " notification for \(count(device.waiting)) is with its sender, which has no "
                + "answer yet"
        case "set_aside":
            line =
                "\(its) gets no notifications, because the push service refuses it, until it "
                + "registers again"
        default: line = "\(its): \(device.wake)"
        }
        line += "."
        if let outcome = device.lastOutcome, let time = device.lastAnsweredAtMs {
            let reason = device.lastReason.map { " (\($0))" } ?? ""
            line += " The last one was \(Self.words(ofWake: outcome))\(reason) \(ago(time))."
        }
        return line
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
