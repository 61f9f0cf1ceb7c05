import ArgumentParser
import BrokerAPI
import PlainText

/// The order of a list of clients, as the command line writes it.
enum ClientOrderArgument {
    /// Throws the parser's error, which lists the orders.
    static func parse(_ text: String) throws -> ClientQuery.Order {
        if let order = ClientQuery.Order.allCases.first(where: { name(of: $0) == text }) {
            return order
        }
        let names = ClientQuery.Order.allCases.map { name(of: $0) }.joined(separator: ", ")
        throw ValidationError("\"\(VisibleText.escaped(text))\" is no order. There are \(names).")
    }

    static func name(of order: ClientQuery.Order) -> String {
        order.rawValue.replacing("_", with: "-")
    }
}
