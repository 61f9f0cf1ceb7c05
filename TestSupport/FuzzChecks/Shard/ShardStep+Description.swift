extension ShardStep: CustomStringConvertible {
    /// For a trace, which also shows the packets.
    var description: String {
        switch self {
        case .open(let slot): "open \(slot)"
        case .connect(let slot, _): "connect \(slot)"
        case .publish(let slot, let publish): "publish by \(slot)\(publish.size)"
        case .respond(let slot, let count, let fromNewest):
            "\(slot) answers \(count) from the \(fromNewest ? "newest" : "oldest")"
        case .acknowledge(let slot, _): "acknowledge by \(slot)"
        case .subscribe(let slot, _, _): "subscribe by \(slot)"
        case .unsubscribe(let slot, _, _): "unsubscribe by \(slot)"
        case .ping(let slot): "ping by \(slot)"
        case .disconnect(let slot): "disconnect \(slot)"
        case .raw(let slot, let bytes): "\(slot) sends \(bytes.count) bytes of its own"
        case .fragment(let slot, let count): "\(slot) will send \(count) bytes of its next packet"
        case .lose(let slot): "\(slot) is lost"
        case .read(let slot, let limit):
            "\(slot) reads " + (limit.map { "\($0) bytes more" } ?? "all")
        case .advance(let milliseconds): "\(milliseconds) ms pass"
        case .complete(let choice): "commit \(choice) completes"
        case .completeAll: "all commits complete"
        case .holdReads(let isHeld): isHeld ? "reads are held" : "reads go on"
        case .refuse(let isRefusing): isRefusing ? "the disk is full" : "the disk has room"
        case .publishByOperator(let publish):
            "the operator publishes to \(text(publish.topic)) at \(publish.qos), "
                + "retain \(publish.retain), expiring \(publish.isDuplicate)\(publish.size)"
        case .query(let choice): "the operator looks at client \(choice)"
        case .kick(let identifier): "the operator disconnects \(text(identifier))"
        case .stale(let choice, let event): "a late event of \(choice): \(event)"
        case .verdict(let choice, let refusal):
            "password check \(choice) ends: " + (refusal.map { "\($0)" } ?? "accepted")
        case .batch(let count): "the next \(count) steps share a turn"
        case .shutDown: "shut down"
        }
    }
}

extension ShardStep.Publish {
    fileprivate var size: String {
        payloadSize.map { ", \($0) bytes behind the number" } ?? ", no payload"
    }
}
