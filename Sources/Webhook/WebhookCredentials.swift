import Synchronization

/// The files of a receiver that are in use, which a reload replaces.
package final class WebhookCredentials: Sendable {
    private let settings: WebhookSettings
    private let files: Mutex<WebhookFiles>

    /// Reads the files at the start; any problem is an error.
    package init(_ settings: WebhookSettings) throws(WebhookFiles.Unusable) {
        self.settings = settings
        files = Mutex(try WebhookFiles.load(settings))
    }

    var inUse: WebhookFiles { files.withLock { $0 } }

    /// Reads the files, for ``use(_:)``.
    package func read() throws(WebhookFiles.Unusable) -> WebhookFiles {
        try WebhookFiles.load(settings)
    }

    /// True when the files differ from those in use.
    package func isChanged(by read: WebhookFiles) -> Bool {
        files.withLock { $0.stamps != read.stamps }
    }

    /// Takes these files for the next request, also for one that repeats another.
    package func use(_ read: WebhookFiles) { files.withLock { $0 = read } }
}
