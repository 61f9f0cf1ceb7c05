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

    /// Drops the match in slices, complete or not.
    public mutating func endSlices() { sliced.end() }
}
