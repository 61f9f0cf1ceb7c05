@_exported import Foundation

public struct UIBackgroundTaskIdentifier: Hashable, Sendable {}

public enum UIBackgroundFetchResult: Sendable {
    case newData, noData, failed
}

@MainActor
open class UIApplication {
    public class var shared: UIApplication { fatalError("a declaration only") }

    public nonisolated class var didEnterBackgroundNotification: NSNotification.Name {
        NSNotification.Name("background")
    }

    public nonisolated class var didBecomeActiveNotification: NSNotification.Name {
        NSNotification.Name("active")
    }

    public func beginBackgroundTask(
        expirationHandler handler: (@MainActor @Sendable () -> Void)? = nil
    ) -> UIBackgroundTaskIdentifier { UIBackgroundTaskIdentifier() }

    public func endBackgroundTask(_ identifier: UIBackgroundTaskIdentifier) {}
}
