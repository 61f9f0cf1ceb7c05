import Reactor
import Structures

/// Connections from a listener's proxies: their header says who the peer is.
extension BrokerLoop {
    /// Whether a new connection comes from one of its listener's proxies and so begins with a header; from
    /// anywhere else, its bytes are a client's.
    func comesByProxy(_ handle: Handle, onListener listener: Int) -> Bool {
        guard listener < settings.listeners.count else { return false }
        let proxies = settings.listeners[listener].proxies
        guard !proxies.isEmpty else { return false }
        let peer = reactor.peerAddress(of: handle)
        return proxies.contains { $0.contains(peer) }
    }
}
