/// One match at a time may be made in slices; ``SlicedMatch`` says how.
extension SubscriptionTrie {
    /// Goes on with the match of a topic, or begins it in place of another topic's, for about so
    /// many steps. True when it is complete: ``match(_:most:)`` and ``search(_:most:)`` of this topic
    /// then answer with it at once, whatever changes, until ``endSlices()``.
    public mutating func matchSlice(
        _ topic: UnsafeRawBufferPointer, steps: inout Int
    ) -> Bool {
        if !sliced.isFor(topic) { sliced.begin(topic) }
        let before = steps
        sliced.run(tree, subscriptions, steps: &steps)
        work += before - steps
        return sliced.isComplete
    }

    /// Goes on with the question which sessions of a complete match may have the message, for about so
    /// many steps. True when all were asked: ``search(_:most:)`` of this topic then answers with them.
    public mutating func askSlice(
        steps: inout Int, _ isPermitted: (_ session: UInt32, _ steps: inout Int) -> Bool
    ) -> Bool {
        var count = 0
        defer { work += count }
        return sliced.ask(steps: &steps) { session, steps in
            count += 1
            return isPermitted(session, &steps)
        }
    }

    /// The answer to a search of a topic whose match in slices is complete, with all questions asked.
    mutating func slicedPermitted(
        _ topic: UnsafeRawBufferPointer, _ topicHash: UInt64
    ) -> Permitted {
        let withheld = sliced.write(to: &matches)
        cache.store(
            topic, hash: topicHash, versions, matches.contents, withheld: withheld)
        return Permitted(matches: matches.contents, withheld: withheld)
    }

    /// Drops the match in slices, complete or not.
    public mutating func endSlices() { sliced.end() }
}
