/// Rules over the keys of the `wakes` section.
extension ConfigurationDraft {
    /// Requires that what is begun is whole: a key with its identifiers, a certificate for a key or
    /// a password.
    mutating func checkWakes() {
        let apns = configuration.wakes.apns
        let prefix = "wakes.apns"
        func has(_ keys: String...) -> Bool {
            keys.contains { givenKeys.contains("\(prefix).\($0)") }
        }
        if has("key_file", "key_id", "team_id"), apns.certificate != nil {
            problems.add(
                "there are a key and a certificate, and one of them is used",
                cure: "Delete wakes.apns.certificate, or key_file, key_id and team_id.",
                key: "\(prefix).certificate", at: origin("\(prefix).certificate"))
        }
        if !apns.apps.isEmpty, !apns.isOn, areUsable("\(prefix).key_file"),
            areUsable("\(prefix).certificate")
        {
            problems.add(
                "apps have keys of their own, and there is none for all others",
                cure: "Give wakes.apns.key_file, key_id and team_id, or wakes.apns.certificate.",
                key: "\(prefix).apps", at: origin("\(prefix).apps"))
        }
        let parts = [
            ("key_file", apns.keyFile == nil), ("key_id", apns.keyID == nil),
            ("team_id", apns.teamID == nil),
        ]
        if has("key_file", "key_id", "team_id") {
            for (name, isMissing) in parts where isMissing && areUsable("\(prefix).\(name)") {
                problems.add(
                    "a key needs its file, its identifier and that of the team",
                    cure: "Give wakes.apns.\(name), as Apple's developer site shows it.",
                    key: "\(prefix).\(name)",
                    at: origin(
                        "\(prefix).\(name)", "\(prefix).key_file", "\(prefix).key_id",
                        "\(prefix).team_id"))
            }
        }
        if apns.certificateKey != nil || apns.certificatePasswordFile != nil,
            apns.certificate == nil, areUsable("\(prefix).certificate")
        {
            problems.add(
                "there is no certificate for this key or password",
                cure: "Give wakes.apns.certificate, or delete it.", key: "\(prefix).certificate",
                at: origin("\(prefix).certificate_key", "\(prefix).certificate_password_file"))
        }
        let fcm = configuration.wakes.fcm
        if !fcm.apps.isEmpty, fcm.account == nil, areUsable("wakes.fcm.service_account") {
            problems.add(
                "apps have service accounts of their own, and there is none for all others",
                cure: "Give wakes.fcm.service_account.",
                key: "wakes.fcm.apps", at: origin("wakes.fcm.apps"))
        }
        let drops = configuration.limits.wakeRules.contains {
            if case .hours(nil, drops: true) = $0.quiet { true } else { false }
        }
        if drops, configuration.limits.wakeQuietHours == nil, areUsable("wakes.quiet_hours") {
            problems.add(
                "a rule drops what comes in quiet hours, and there are none",
                cure: "Give wakes.quiet_hours, or the rule's own: quiet=22:00-07:00+drop.",
                key: "wakes.rules", at: origin("wakes.rules"))
        }
    }
}
