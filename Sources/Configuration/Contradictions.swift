import Addresses

/// Rules over several keys.
extension ConfigurationDraft {
    mutating func checkContradictions() {
        checkListenersApart()
        checkAdminApart()
        checkAdminTLS()
        checkSomebodyMayConnect()
        checkTLS()
        checkWebSocket()
        checkPacketSizes()
        checkWebhooks()
        checkWakes()
        checkAuth()
    }

    /// Rejects two listeners on the same address and port, unless the port is 0 (any free port).
    private mutating func checkListenersApart() {
        let listeners = configuration.listeners
        for index in listeners.indices where listeners[index].port != 0 {
            for earlier in 0..<index where listeners[earlier].port == listeners[index].port {
                guard
                    areUsable("listeners[\(index)].port", "listeners[\(earlier)].port"),
                    overlap(index, listeners[earlier].address, "listeners[\(earlier)].address")
                else { continue }
                problems.add(
                    "\(socket(index)) is taken by listeners[\(earlier)] already",
                    cure: "Give one of the two another port or address.",
                    key: "listeners[\(index)]",
                    at: origin(
                        "listeners[\(index)].port", "listeners[\(index)].address",
                        "listeners[\(index)]", "listeners[\(earlier)].port"))
                break
            }
        }
    }

    private mutating func checkAdminApart() {
        let admin = configuration.admin
        guard admin.port != 0 else { return }
        for index in configuration.listeners.indices
        where configuration.listeners[index].port == admin.port {
            guard areUsable("listeners[\(index)].port", "admin.port"),
                overlap(index, admin.address, "admin.address")
                    || IPAddress(listener: admin.address) == IPAddress(listener: "::")
            else { continue }
            problems.add(
                "\(socket(index)) is where the admin API listens (admin.address, admin.port)",
                cure: "Give one of the two another port.",
                key: "listeners[\(index)]",
                at: origin(
                    "listeners[\(index)].port", "admin.port", "listeners[\(index)].address",
                    "admin.address", "listeners[\(index)]"))
        }
    }

    /// Rejects a listener that no client could use: it takes no anonymous ones, and there are no users.
    private mutating func checkSomebodyMayConnect() {
        guard !configuration.checksLogins, areUsable("password_file") else { return }
        for (index, listener) in configuration.listeners.enumerated() {
            let key = "listeners[\(index)].allow_anonymous"
            guard
                areUsable(
                    key, "listeners[\(index)].address", "listeners[\(index)].proxy_from"),
                !listener.tls.identifiesEveryClient,
                !configuration.allowsAnonymous(on: listener)
            else { continue }
            let isForbidden = listener.allowAnonymous == false
            let cause =
                if isForbidden {
                    "anonymous clients are turned away"
                } else if listener.isLoopback {
                    "behind a proxy a client needs a user name"
                } else {
                    "beyond loopback a client needs a user name"
                }
            problems.add(
                "nobody can connect to \(socket(index)): \(cause), and there are no users",
                cure:
                    "Name users with password_file (hermesctl users add), or set allow_anonymous: true to let everyone in.",
                key: key,
                at: isForbidden
                    ? origin(key)
                    : origin(
                        listener.isLoopback
                            ? "listeners[\(index)].proxy_from" : "listeners[\(index)].address", key,
                        "listeners[\(index)]"))
        }
    }

    private mutating func checkPacketSizes() {
        let limits = configuration.limits
        guard areUsable("limits.max_connect_packet", "limits.max_packet"),
            limits.maxConnectPacketBytes > limits.maxPacketBytes
        else { return }
        problems.add(
            "\(Quantity.size(limits.maxConnectPacketBytes)) is more than limits.max_packet, \(Quantity.size(limits.maxPacketBytes))",
            cure: "Lower it, or raise limits.max_packet.",
            key: "limits.max_connect_packet",
            at: origin("limits.max_connect_packet"))
    }

    private func overlap(_ index: Int, _ other: String, _ otherKey: String) -> Bool {
        guard areUsable("listeners[\(index)].address", otherKey),
            let own = IPAddress(listener: configuration.listeners[index].address),
            let other = IPAddress(listener: other)
        else { return false }
        return own.overlaps(other)
    }

    private func socket(_ index: Int) -> String {
        let listener = configuration.listeners[index]
        return IPAddress.text(host: listener.address, port: listener.port)
    }
}
