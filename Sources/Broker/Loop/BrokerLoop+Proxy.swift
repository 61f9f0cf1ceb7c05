import Structures
import Transport

/// Connections from a listener's proxies: their header says who the peer is.
extension BrokerLoop {
    /// Whether a new connection's peer is one of its listener's proxies, so that it begins with a header;
    /// from anywhere else, its bytes are a client's.
    func isProxy(_ peer: PeerAddress, ofListener listener: Int) -> Bool {
        guard listener < settings.listeners.count else { return false }
        return settings.listeners[listener].proxies.contains { $0.contains(peer) }
    }
}
