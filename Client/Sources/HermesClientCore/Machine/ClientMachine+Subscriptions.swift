import MQTTCodec

/// A subscription that the client does not take.
package enum SubscriptionError: Error, Hashable, Sendable {
    /// The topic filter is no topic filter.
    case filter(MalformedPacket)
    /// ``ClientLimits/subscriptions`` or ``ClientLimits/subscriptionBytes`` is reached.
    case tooMany
}

extension ClientMachine {
    /// A request holds so many topic filters, or bytes of them, at most.
    static let mostFiltersOfRequest = 100
    static let mostRequestBytes = 32 << 10
    static let answerMilliseconds: Int64 = 30_000

    /// Keeps a subscription until ``unsubscribe(_:at:)``; it is renewed when the session is lost.
    /// ``ClientAction/subscriptionAnswered(_:_:)`` tells what the broker says.
    package mutating func subscribe(
        _ filter: [UInt8], qos: QoS, countsLosses: Bool = true, sendsNow: Bool = true,
        at moment: Moment
    ) throws(SubscriptionError) {
        guard filter.count <= Int(UInt16.max) else { throw .filter(.truncated) }
        do throws(MalformedPacket) {
            try filter.read { bytes throws(MalformedPacket) in
                try TextValidation.checkTopicFilter(bytes, filter.whole)
            }
        } catch {
            throw .filter(error)
        }
        let known = stored.subscriptions[filter]
        if known == nil {
            let table = stored.subscriptions
            guard table.all.count < settings.limits.subscriptions,
                table.bytes + filter.count <= settings.limits.subscriptionBytes
            else { throw .tooMany }
        }
        if let known, case .granted(let granted) = known.state, known.qos == qos,
            known.countsLosses == countsLosses
        {
            perform(.subscriptionAnswered(filter, .granted(granted.rawValue)))
            return
        }
        // One that was granted stays the app's when a change of its QoS is refused.
        let state: Subscription.State = known?.state.isGranted == true ? .lost : .wanted
        link?.refused.remove(filter)
        record(
            .subscription(
                Subscription(filter: filter, qos: qos, state: state, countsLosses: countsLosses)))
        if sendsNow { sendOutgoing(at: moment.monotonicMilliseconds) }
    }

    /// Ends a subscription, at once or when there is a connection; one that is unknown is answered
    /// at once.
    package mutating func unsubscribe(
        _ filter: [UInt8], sendsNow: Bool = true, at moment: Moment
    ) {
        guard var subscription = stored.subscriptions[filter] else {
            perform(.subscriptionAnswered(filter, .unsubscribed))
            return
        }
        subscription.state = .unwanted
        record(.subscription(subscription))
        if sendsNow { sendOutgoing(at: moment.monotonicMilliseconds) }
    }

    /// Takes back a change that could not be stored and was not sent.
    package mutating func restore(_ filter: [UInt8], _ former: Subscription?) {
        stored.apply(former.map { .subscription($0) } ?? .subscriptionForgotten(filter))
    }

    /// Sends the next SUBSCRIBE or UNSUBSCRIBE, unless one is under way.
    mutating func sendSubscriptions(at now: Int64) {
        guard let link, link.request == nil else { return }
        let open = stored.subscriptions.all.filter {
            switch $0.state {
            case .wanted, .unwanted: true
            case .lost: !link.refused.contains($0.filter)
            case .granted: false
            }
        }
        guard let first = open.first else { return }
        let isUnsubscribe = first.state == .unwanted
        var filters: [Subscription] = []
        var payload: [UInt8] = []
        for subscription in open where (subscription.state == .unwanted) == isUnsubscribe {
            guard filters.count < Self.mostFiltersOfRequest,
                filters.isEmpty || payload.count + subscription.filter.count < Self.mostRequestBytes
            else { break }
            filters.append(subscription)
            if isUnsubscribe {
                PacketEncoder.appendFilter(subscription.filter, to: &payload)
            } else {
                PacketEncoder.appendRequest(
                    filter: subscription.filter, qos: subscription.qos, to: &payload)
            }
        }
        let identifier = freeIdentifier()
        self.link?.request = SubscriptionRequest(
            identifier: identifier, filters: filters, isUnsubscribe: isUnsubscribe,
            deadline: now + Self.answerMilliseconds)
        var bytes: [UInt8] = []
        payload.withUnsafeBytes {
            PacketEncoder.append(
                isUnsubscribe ? .unsubscribe : .subscribe, identifier, $0, to: &bytes)
        }
        send(bytes, at: now)
    }

    /// SUBACK with its codes, or UNSUBACK without.
    mutating func receiveAnswer(
        _ type: PacketType, _ identifier: PacketIdentifier, codes: [UInt8]?, at moment: Moment
    ) {
        guard let request = link?.request, request.identifier == identifier,
            request.isUnsubscribe == (codes == nil),
            codes.map({ $0.count == request.filters.count }) ?? true
        else {
            drop(.violation(.unexpectedAnswer(type, identifier)), at: moment)
            return
        }
        link?.request = nil
        if let codes {
            for (subscription, code) in zip(request.filters, codes) {
                apply(code, to: subscription)
            }
        } else {
            for subscription in request.filters {
                // Also of one that the app wants again meanwhile.
                forgetBaselines(of: subscription.filter)
                forget(subscription)
            }
        }
        sendOutgoing(at: moment.monotonicMilliseconds)
    }

    /// The app may have changed its mind since the request: then another request follows.
    private mutating func apply(_ code: UInt8, to asked: Subscription) {
        guard stored.subscriptions[asked.filter] == asked else { return }
        if let granted = QoS(rawValue: code) {
            var subscription = asked
            subscription.state = .granted(granted)
            record(.subscription(subscription))
            perform(.subscriptionAnswered(asked.filter, .granted(code)))
            return
        }
        switch asked.state {
        case .lost:
            // The rights may come back: it is asked for again on the next connection.
            link?.refused.insert(asked.filter)
            perform(.event(.renewalRefused(filter: asked.filter)))
        case .wanted, .granted, .unwanted: record(.subscriptionForgotten(asked.filter))
        }
        perform(.subscriptionAnswered(asked.filter, .refused))
    }

    private mutating func forget(_ asked: Subscription) {
        guard stored.subscriptions[asked.filter] == asked else { return }
        record(.subscriptionForgotten(asked.filter))
        perform(.subscriptionAnswered(asked.filter, .unsubscribed))
    }
}
