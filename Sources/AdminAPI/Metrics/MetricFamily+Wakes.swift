import BrokerAPI

extension MetricFamily {
    /// Metrics of devices and of the notifications that wake them.
    static let wakes: [MetricFamily] = [
        .gauge("hermes_devices", "Devices that clients have registered.") { $0.devices },
        .gauge("hermes_device_bytes", "These devices, and the wakes that they may be owed.") {
            $0.deviceBytes
        },
        .counters(
            "hermes_device_registrations_refused_total", by: "reason",
            "Registrations of devices that were not taken.", { $0.deviceRefusals }),
        .gauge("hermes_wakes_owed", "Devices that are owed a wake, or whose client is watched.") {
            $0.wakesOwed
        },
        .counters(
            "hermes_wake_messages_total", by: "outcome",
            "Messages that asked for a wake, by whether it was a new one.", { $0.wakeMessages }),
        .counters(
            "hermes_wakes_total", by: "outcome",
            "Wakes by their end, and attempts that are repeated later.", { $0.wakes }),
    ]
}
