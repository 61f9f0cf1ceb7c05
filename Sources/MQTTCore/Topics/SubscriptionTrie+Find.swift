import Structures

extension SubscriptionTrie {
    /// Finds a session's subscription at a node. Walks the node's list and the session's list in
    /// step, and stops with the shorter one. For a session with many subscriptions ``SessionIndex``
    /// answers.
    func find(_ session: UInt32, _ list: List, _ node: UInt32) -> UInt32? {
        guard list.count <= SessionIndex.mostWalked else {
            return sessionIndex.find(session, node) {
                subscriptions[$0].session == session && subscriptions[$0].node == node
            }
        }
        var inNode = tree[node].value
        var inSession = list.members.first
        while inNode != noIndex, inSession != noIndex {
            if subscriptions[inNode].session == session { return inNode }
            if subscriptions[inSession].node == node { return inSession }
            inNode = subscriptions[inNode].inNode.next
            inSession = subscriptions[inSession].inSession.next
        }
        return nil
    }
}
