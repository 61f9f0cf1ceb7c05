import HermesKit
import SwiftUI

/// An app that holds the Hermes channel and shows the statuses of one person's orders.
@main
struct HermesApp: App {
    @UIApplicationDelegateAdaptor private var delegate: AppDelegate

    var body: some Scene {
        WindowGroup {
            switch delegate.channel {
            case .success(let channel): OrdersView(channel: channel)
            case .failure(let error): Text(error.localizedDescription)
            }
        }
    }
}
