/// The receipt of the owner's last message of a name, or else of another owner's; `nil` without
/// one.
public struct ShowReceipt: BrokerQuestion {
    public typealias Answer = MessageReceipt?

    public let name: OwnedName

    public init(name: OwnedName) { self.name = name }
}
