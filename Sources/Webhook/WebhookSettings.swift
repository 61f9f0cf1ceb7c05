/// The settings of the webhook, which have been checked.
package struct WebhookSettings: Sendable, Equatable {
    /// The section of the configuration, for error messages.
    package var section: String
    /// An absolute http or https URL, without user and fragment.
    package var url: String
    /// Path of a file with the secret that signs requests.
    package var secretFile: String
    /// Path of a PEM file with the authorities that may have issued the receiver's certificate;
    /// `nil` for those that the system trusts.
    package var caFile: String?
    /// Longest time from the beginning of a request to its answer.
    package var timeout = Duration.seconds(10)
    /// Longest pause between two attempts.
    package var longestPause = Duration.seconds(300)

    package init(section: String = "webhook", url: String, secretFile: String) {
        self.section = section
        self.url = url
        self.secretFile = secretFile
    }
}
