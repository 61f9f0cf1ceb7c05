import Structures

/// What the rules without names and placeholders said about the last topic, for one set of rules: a
/// message to many asks about one topic for each of its receivers.
public struct RuleMemo {
    private var topic: [UInt8] = []
    private var action: AccessAction?
    /// By ``GeneralRules/Kind``: the first rule that fits the topic, or the largest index for none;
    /// `nil` while it is not known.
    private var first: (UInt32?, UInt32?, UInt32?) = (nil, nil, nil)

    public init() {}

    /// Forgets all, because other rules are asked from now on.
    public mutating func removeAll() { action = nil }

    /// Begins a question about a topic.
    @inline(__always)
    mutating func begin(_ topic: UnsafeRawBufferPointer, _ action: AccessAction) {
        let isSame =
            self.action == action && self.topic.withUnsafeBytes { $0.elementsAreEqual(to: topic) }
        if !isSame { replace(topic, action) }
    }

    private mutating func replace(_ topic: UnsafeRawBufferPointer, _ action: AccessAction) {
        self.action = action
        self.topic.removeAll(keepingCapacity: true)
        self.topic.append(contentsOf: topic)
        first = (nil, nil, nil)
    }

    subscript(kind: GeneralRules.Kind) -> UInt32? {
        get {
            switch kind {
            case .everyone: first.0
            case .anonymous: first.1
            case .anyUser: first.2
            }
        }
        set {
            switch kind {
            case .everyone: first.0 = newValue
            case .anonymous: first.1 = newValue
            case .anyUser: first.2 = newValue
            }
        }
    }
}
