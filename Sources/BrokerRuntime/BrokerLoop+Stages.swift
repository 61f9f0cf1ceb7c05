import Addresses
import Structures
import Transport

/// The stages of a listener's connections.
extension BrokerLoop {
    /// True when the peer is one of the listener's proxies, so that a PROXY header comes first.
    func isProxy(_ peer: IPAddress, ofListener listener: Int) -> Bool {
        guard listener < settings.listeners.count else { return false }
        return settings.listeners[listener].proxies.contains { $0.contains(peer) }
    }

    /// True when every connection of the listener begins with TLS, because it has no proxies.
    func beginsWithTLS(_ listener: Int) -> Bool {
        contexts[listener] != nil && settings.listeners[listener].proxies.isEmpty
    }

    /// Sets the stages of a new connection.
    mutating func begin(_ handle: Handle, onListener listener: Int, isProxied: Bool) {
        let context = contexts[listener]
        let speaksWebSocket =
            listener < settings.listeners.count && settings.listeners[listener].webSocket != nil
        reactor.begin(
            handle, proxyHeader: isProxied, tls: context,
            webSocket: speaksWebSocket ? listener : nil)
        if context != nil { handshakeOrder.begin(handle, at: shard.now) }
    }
}
