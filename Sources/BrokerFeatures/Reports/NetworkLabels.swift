import BrokerAPI
import BrokerCore
import Structures

/// The names that clients give their networks, each with a number, for counting by network.
///
/// There are as many as fit a table that a person reads; further ones share a number.
struct NetworkLabels {
    static let none: UInt8 = 0
    /// The number of all names beyond the first ``most``.
    static let others: UInt8 = 255
    private static let most = 64
    private static let longest = 32

    /// The name of number 1 comes first.
    private var names: [[UInt8]] = []

    var count: Int { names.count }

    /// The number of a name, which is known, or new if it may be. One of more than 32 bytes, or that
    /// is no printable UTF-8, counts as none.
    mutating func number(of name: UnsafeRawBufferPointer, mayBeNew: Bool = true) -> UInt8 {
        guard !name.isEmpty, name.count <= Self.longest else { return Self.none }
        let known = names.firstIndex { $0.withUnsafeBytes { $0.elementsAreEqual(to: name) } }
        if let known { return UInt8(known + 1) }
        guard mayBeNew, names.count < Self.most,
            !LostConnections.otherNetwork.utf8.elementsEqual(name)
        else { return Self.others }
        guard let text = String(validating: name, as: UTF8.self),
            text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && !(0x7F...0x9F ~= $0.value) })
        else { return Self.none }
        names.append([UInt8](name))
        return UInt8(names.count)
    }

    /// The name of a number; empty for ``none``.
    func name(_ number: UInt8) -> String {
        switch number {
        case Self.none: ""
        case Self.others: LostConnections.otherNetwork
        default: String(decoding: names[Int(number) - 1], as: UTF8.self)
        }
    }
}
