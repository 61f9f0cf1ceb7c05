import HermesKit
import UIKit

/// What iOS tells the app, handed on to the channel.
///
/// This is UIKit's delegate because SwiftUI's scene phase tells nothing of pushes, and comes too late
/// for the goodbye on the way to the background.
@MainActor
final class AppDelegate: UIResponder, UIApplicationDelegate {
    /// Made once, before anything asks for it: the storage file has one owner.
    let channel = Result { try Channel(Settings.ofThisDevice()) }

    private var client: HermesClient? { try? channel.get().client }

    func application(
        _ application: UIApplication,
        didFinishLaunchingWithOptions options: [UIApplication.LaunchOptionsKey: Any]? = nil
    ) -> Bool {
        guard let client else { return true }
        let center = NotificationCenter.default
        center.addObserver(
            forName: UIApplication.didEnterBackgroundNotification, object: nil, queue: .main
        ) { _ in
            MainActor.assumeIsolated {
                let task = UIApplication.shared.beginBackgroundTask()
                // Not in a Task, which might run after the app is in the foreground again.
                client.enteredBackground {
                    Task { @MainActor in UIApplication.shared.endBackgroundTask(task) }
                }
            }
        }
        center.addObserver(
            forName: UIApplication.didBecomeActiveNotification, object: nil, queue: .main
        ) { _ in
            client.enteredForeground()
        }
        client.followNetwork()
        client.start()
        application.registerForRemoteNotifications()
        return true
    }

    /// Asked for at each start, because a token may change while the app is away.
    func application(
        _ application: UIApplication, didRegisterForRemoteNotificationsWithDeviceToken token: Data
    ) {
        guard let client, let bundle = Bundle.main.bundleIdentifier else { return }
        Task { try await client.registerDevice(token: token, bundle: bundle) }
    }

    /// The broker has something for a phone that is away: connects for 25 s.
    func application(
        _ application: UIApplication, didReceiveRemoteNotification info: [AnyHashable: Any]
    ) async -> UIBackgroundFetchResult {
        guard let client else { return .noData }
        await client.wokenByPush()
        return .newData
    }
}
