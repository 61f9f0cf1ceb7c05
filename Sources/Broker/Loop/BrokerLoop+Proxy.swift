import Reactor
import Structures

/// Connections from a listener's proxies: their header says who the peer is.
extension BrokerLoop {
    /// A connection from one of the listener's proxies begins with a header; from anywhere else, its
    /// bytes are a client's.
    mutating func expectProxyHeader(_ handle: Handle, onListener listener: Int) {
        guard listener < settings.listeners.count else { return }
        let proxies = settings.listeners[listener].proxies
        guard !proxies.isEmpty else { return }
        let peer = reactor.peerAddress(of: handle)
        guard proxies.contains(where: { $0.contains(peer) }) else { return }
        reactor.expectProxyHeader(handle)
    }
}
