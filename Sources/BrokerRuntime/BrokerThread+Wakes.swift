import BrokerAPI

extension BrokerThread: WakeFeed {
    package func next(_ kind: Device.Kind, _ demand: WakeDemand) {
        _ = tell(.command(.nextWakes(kind, demand)))
    }

    package func answer(_ answers: [WakeAnswer]) -> Bool {
        tell(.command(.wakeAnswers(answers)))
    }
}
