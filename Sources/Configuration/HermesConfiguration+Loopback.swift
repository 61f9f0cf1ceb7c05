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
    /// True for a listener on `::` whose port another listener, or the HTTP API, has for IPv4. Alone,
    /// such a listener takes the clients of both families.
    package func leavesIPv4ToOthers(_ listener: Listener) -> Bool {
        guard listener.port != 0 else { return false }
        let others = listeners.map { ($0.address, $0.port) } + [(admin.address, admin.port)]
        return others.contains { address, port in
            port == listener.port && IPAddress(listener: address)?.family == .ipv4
        }
    }

    /// True when a CONNECT without a user name is accepted. `listeners[].allow_anonymous` decides;
    /// if unset, only loopback listeners without users and proxies accept it.
    package func allowsAnonymous(on listener: Listener) -> Bool {
        listener.allowAnonymous
            ?? (listener.isLoopback && listener.proxyFrom.isEmpty && !checksLogins)
    }
}
