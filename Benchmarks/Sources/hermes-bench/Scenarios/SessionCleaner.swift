import MQTTCodec

/// Removes the persistent sessions of a run: each client connects once more, with clean session 1.
struct SessionCleaner: PacketHandler {
    private static var mostOpen: Int { 32 }

    let address: BrokerAddress
    /// In nanoseconds.
    let patience: UInt64
    let identifiers: [[UInt8]]
    let userName: String?
    private var opened = 0
    private var cleaned = 0
    private var lastArrival = Clock.nanoseconds()

    init(
        address: BrokerAddress, patience: UInt64, identifiers: [[UInt8]], userName: String? = nil
    ) {
        self.address = address
        self.patience = patience
        self.identifiers = identifiers
        self.userName = userName
    }

    mutating func run(_ sockets: inout ClientSockets) throws(BenchFailure) {
        while cleaned < identifiers.count || sockets.count > 0 {
            try sockets.turn(atMost: 50_000_000, &self)
            guard sockets.now < lastArrival + patience else {
                throw BenchFailure(
                    "only \(cleaned) of \(identifiers.count) sessions could be removed afterwards.")
            }
        }
    }

    mutating func receive(
        _ frame: PacketDecoder.Frame, _ bytes: UnsafeRawBufferPointer, _ client: UInt32,
        _ sockets: inout ClientSockets
    ) throws(BenchFailure) {
        lastArrival = sockets.now
        // Late acknowledgements of the run itself may still come in.
        guard frame.type == .connack else { return }
        try ClientPackets.checkAccepted(frame, bytes, client)
        cleaned += 1
        sockets.disconnect(client)
    }

    mutating func closed(
        _ client: UInt32, _ reason: String, _ sockets: inout ClientSockets
    ) throws(BenchFailure) {}

    mutating func endTurn(_ sockets: inout ClientSockets) throws(BenchFailure) {
        while opened < identifiers.count, opened - cleaned < Self.mostOpen {
            let client = try sockets.open(address)
            sockets.append(
                client,
                ClientPackets.connect(
                    identifiers[opened], cleanSession: true, userName: userName))
            opened += 1
        }
    }
}
