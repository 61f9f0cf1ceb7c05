import Structures
import Transport

/// The stages that a listener's connections pass before their packets.
extension BrokerLoop {
    /// Whether a new connection's peer is one of its listener's proxies, so that it begins with a header;
    /// from anywhere else, its bytes are a client's.
    func isProxy(_ peer: PeerAddress, ofListener listener: Int) -> Bool {
        guard listener < settings.listeners.count else { return false }
        return settings.listeners[listener].proxies.contains { $0.contains(peer) }
    }

    /// Whether the first bytes of all connections of a listener are TLS: it has no proxies.
    func beginsWithTLS(_ listener: Int) -> Bool {
        contexts[listener] != nil && settings.listeners[listener].proxies.isEmpty
    }

    /// Chooses the stages of a new connection.
    mutating func begin(_ handle: Handle, onListener listener: Int, isProxied: Bool) {
        let context = contexts[listener]
        reactor.begin(handle, proxyHeader: isProxied, tls: context)
        if context != nil { handshakeOrder.begin(handle, at: shard.now) }
    }
}
