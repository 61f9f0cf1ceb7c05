#if canImport(Network)
    import Dispatch
    import Network

    /// Follows the device's network: tells a label when another one is used, and `nil` for none.
    package final class PathWatch: Sendable {
        private let monitor = NWPathMonitor()

        package init(_ tell: @escaping @Sendable (String?) -> Void) {
            monitor.pathUpdateHandler = { path in
                guard path.status == .satisfied else { return tell(nil) }
                let interface = path.availableInterfaces.first
                // Two wireless networks share an interface; their gateways tell them apart.
                let gateway = path.gateways.first.map { " \($0)" } ?? ""
                tell(interface.map { "\($0.type) \($0.name)\(gateway)" } ?? "unknown")
            }
            monitor.start(queue: .global(qos: .utility))
        }

        deinit { monitor.cancel() }
    }
#endif
