import BrokerAPI

extension BrokerThread: WakeFeed {
    package func next(_ kind: Device.Kind, most: Int, take: @escaping @Sendable ([Wake]) -> Void) {
        _ = tell(.command(.nextWakes(kind, most: most, take: take)))
    }

    package func answer(_ answers: [WakeAnswer]) { _ = tell(.command(.wakeAnswers(answers))) }
}
