import HermesKit
import SwiftUI

/// The orders, and how the connection stands.
struct OrdersView: View {
    let channel: Channel
    @State private var observed: HermesClient.Observed
    @State private var orders: [HermesClient.OrderStatusUpdate] = []
    @State private var unsent: [HermesClient.OutgoingMessage] = []

    init(channel: Channel) {
        self.channel = channel
        _observed = State(
            initialValue: HermesClient.Observed(
                channel.client, matching: "orders/\(channel.salesID)/#"))
    }

    var body: some View {
        NavigationStack {
            List {
                if !observed.isConnected {
                    Section {
                        Text("\(observed.state.description)")
                        Button("Connect now") { channel.client.reconnectNow() }
                    }
                }
                Section {
                    ForEach(orders) { order in
                        Button {
                            Task { try await channel.tellSeen(order.orderID) }
                        } label: {
                            OrderRow(order: order)
                        }
                    }
                }
                if !unsent.isEmpty {
                    Section {
                        ForEach(unsent) { OutgoingRow(message: $0, client: channel.client) }
                    }
                }
            }
            .navigationTitle("Orders")
        }
        // Anew with each message and each change of the connection.
        .task(id: observed.messages.last?.id) { await refresh() }
        .task(id: observed.isConnected) { await refresh() }
    }

    private func refresh() async {
        orders = await channel.orders.newest
        unsent = await channel.client.outbox()
    }
}

private struct OrderRow: View {
    let order: HermesClient.OrderStatusUpdate

    var body: some View {
        VStack(alignment: .leading) {
            Text(order.orderID)
            Text("\(order.status)")
        }
    }
}

/// A message that has not left, or that the broker does not take.
private struct OutgoingRow: View {
    let message: HermesClient.OutgoingMessage
    let client: HermesClient

    var body: some View {
        HStack {
            Text(message.message.topic)
            Spacer()
            if message.isHeldBack {
                Button("Discard") { Task { await client.discard(message.id) } }
            } else {
                Text("waits")
            }
        }
    }
}
