@_exported import Foundation

public struct UIBackgroundTaskIdentifier: Hashable, Sendable {}

public enum UIBackgroundFetchResult: Sendable {
    case newData, noData, failed
}

@MainActor
open class UIResponder: NSObject {
    public override nonisolated init() {}
}

@MainActor
open class UIApplication: UIResponder {
    public struct LaunchOptionsKey: Hashable, Sendable {}

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

    public func registerForRemoteNotifications() {}
}

/// The methods are optional in Objective-C, which the extension stands for.
@MainActor
public protocol UIApplicationDelegate: AnyObject {
    func application(
        _ application: UIApplication,
        didFinishLaunchingWithOptions options: [UIApplication.LaunchOptionsKey: Any]?
    ) -> Bool

    func application(
        _ application: UIApplication, didRegisterForRemoteNotificationsWithDeviceToken token: Data
    )

    func application(
        _ application: UIApplication, didReceiveRemoteNotification info: [AnyHashable: Any]
    ) async -> UIBackgroundFetchResult
}

extension UIApplicationDelegate {
    public func application(
        _ application: UIApplication,
        didFinishLaunchingWithOptions options: [UIApplication.LaunchOptionsKey: Any]?
    ) -> Bool { true }

    public func application(
        _ application: UIApplication, didRegisterForRemoteNotificationsWithDeviceToken token: Data
    ) {}

    public func application(
        _ application: UIApplication, didReceiveRemoteNotification info: [AnyHashable: Any]
    ) async -> UIBackgroundFetchResult { .noData }
}
