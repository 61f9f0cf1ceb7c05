import Addresses

extension HermesConfiguration.Listener {
    /// True for `localhost`, 127.0.0.0/8 and `::1`.
    package var isLoopback: Bool { IPAddress(listener: address)?.isLoopback ?? false }
}

extension HermesConfiguration.Admin {
    /// True for `localhost`, 127.0.0.0/8 and `::1`.
    package var isLoopback: Bool { IPAddress(listener: address)?.isLoopback ?? false }

    /// True when the operator's page is served.
    package var servesPage: Bool {
        switch page {
        case .auto: isLoopback
        case .on: true
        case .off: false
        }
    }
}

extension HermesConfiguration {
    /// True when a CONNECT without a user name is accepted. `listeners[].allow_anonymous` decides;
    /// if unset, only loopback listeners without users and proxies accept it.
    package func allowsAnonymous(on listener: Listener) -> Bool {
        listener.allowAnonymous
            ?? (listener.isLoopback && listener.proxyFrom.isEmpty && !checksLogins)
    }
}
