import MQTTCodec

/// A message scenario: publishers and subscribers, their rate, and the duration.
struct LoadPlan {
    enum Shape {
        /// Publisher i to subscriber i.
        case pairs(Int)
        /// One publisher to all subscribers.
        case fanOut(subscribers: Int)
        /// All publishers to one subscriber.
        case fanIn(publishers: Int)
    }

    enum Pace {
        /// Largest number of a publisher's messages in progress: without acknowledgement, or not
        /// received by all its subscribers.
        case window(Int)
        /// Messages per second of all publishers together, on a fixed schedule.
        case rate(Double)
    }

    enum Extent {
        /// Measures for so many nanoseconds after so many of warming up.
        case time(warmUp: UInt64, measured: UInt64)
        /// Each publisher sends exactly so many, and all of them are measured.
        case messages(perPublisher: UInt64)
    }

    var shape: Shape
    var pace: Pace
    var extent: Extent
    var qos: QoS
    var payloadBytes: Int
    /// Subscribers connect with clean session 0.
    var subscribersPersist: Bool
    /// Delay of a subscriber's acknowledgement in nanoseconds; 0 answers in the same turn.
    var acknowledgeAfter: UInt64
    /// Time without any arrival after which the run is ended, in nanoseconds.
    var patience: UInt64

    var publishers: Int {
        switch shape {
        case .pairs(let count), .fanIn(let count): count
        case .fanOut: 1
        }
    }

    var subscribers: Int {
        switch shape {
        case .pairs(let count), .fanOut(let count): count
        case .fanIn: 1
        }
    }

    /// Receivers of one message.
    var receiversPerMessage: Int {
        switch shape {
        case .pairs, .fanIn: 1
        case .fanOut(let subscribers): subscribers
        }
    }

    /// Distinct pairs of a publisher and a subscriber that it reaches.
    var streams: Int { max(publishers, subscribers) }

    /// The stream of a message, or `nil` when this publisher does not reach this subscriber.
    func stream(publisher: Int, subscriber: Int) -> Int? {
        guard publisher < publishers else { return nil }
        switch shape {
        case .pairs: return publisher == subscriber ? publisher : nil
        case .fanOut: return subscriber
        case .fanIn: return publisher
        }
    }
}
