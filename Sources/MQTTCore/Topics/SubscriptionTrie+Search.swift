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

    /// Does the same as ``match(_:most:)`` for a caller that leaves out sessions without the right
    /// to read the topic. A trie must not mix both kinds of calls, unless ``invalidate()`` stands
    /// between them.
    public mutating func search(_ topic: UnsafeRawBufferPointer, most: Int) -> Search? {
        let topicHash = hash(topic)
        if let cached = cache.find(topic, hash: topicHash, versions) {
            return .cached(
                Permitted(
                    matches: cached,
                    withheld: cache.withheld(hash: topicHash)))
        }
        if sliced.isFor(topic) {
            if sliced.areAllAsked { return .cached(slicedPermitted(topic, topicHash)) }
            // Unless it has no bound, it goes on in slices.
            if most != .max { return nil }
        }
        guard collect(topic, most: most) else { return nil }
        return .collected(matches.mutableContents)
    }

    /// Caches the first `count` matches of the search that was just made, and returns them.
    public mutating func keep(_ topic: UnsafeRawBufferPointer, permitted count: Int) -> Permitted {
        let kept = UnsafeBufferPointer(rebasing: matches.contents[..<count])
        let withheld = UInt32(clamping: matches.count - count)
        cache.store(topic, hash: hash(topic), versions, kept, withheld: withheld)
        return Permitted(matches: kept, withheld: withheld)
    }

    /// Outdates all cached matches, for instance after rights have changed.
    public mutating func invalidate() {
        versions.changeAll()
        if sliced.isActive { sliced.forgetRights() }
    }

    /// Outdates all cached matches, after the rights of one session have changed.
    public mutating func invalidate(_ session: UInt32) {
        versions.changeAll()
        if sliced.isActive { sliced.forgetRights(of: session) }
    }
}
