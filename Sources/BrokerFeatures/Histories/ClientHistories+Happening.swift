import BrokerAPI
import BrokerCore

extension ClientHistories {
    /// Something that happens now.
    public struct Happening {
        var kind: ClientEvent.Kind
        var reason: String
        /// In a form that only the caller knows; empty if it is not known.
        var address: [UInt8]
        var userName: [UInt8]
        var topic: [UInt8]
        var count: UInt64
        /// A clause that says more than the reason; empty without one.
        var detail: [UInt8]

        public init(
            _ kind: ClientEvent.Kind, reason: String, address: [UInt8] = [],
            userName: [UInt8]? = nil, topic: [UInt8]? = nil, count: UInt64 = 1,
            detail: String? = nil
        ) {
            self.kind = kind
            self.reason = reason
            self.address = address
            self.userName = userName ?? []
            self.topic = topic ?? []
            self.count = count
            self.detail = detail.map { Array($0.utf8) } ?? []
        }
    }
}
