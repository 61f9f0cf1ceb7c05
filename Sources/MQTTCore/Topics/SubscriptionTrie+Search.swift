/// What ``SubscriptionTrie/search(_:)`` answers to a caller that leaves out sessions.
extension SubscriptionTrie {
    /// The matches of a topic without the sessions that may not read it.
    public struct Permitted {
        /// Valid until the next call on the trie.
        public let matches: UnsafeBufferPointer<Match>
        /// The number of sessions that were left out.
        public let withheld: UInt32
    }

    /// The answer to ``search(_:)``.
    public enum Search {
        /// The matches that ``keep(_:permitted:)`` cached for this topic; no subscription to it has
        /// changed since.
        case cached(Permitted)
        /// All sessions that subscribed to the topic. The caller moves those that may read it to
        /// the front and passes their number to ``keep(_:permitted:)``.
        case collected(UnsafeMutableBufferPointer<Match>)
    }
}
