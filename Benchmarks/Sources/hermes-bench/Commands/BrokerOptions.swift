import ArgumentParser

/// The broker to load, and the destination of the figures.
struct BrokerOptions: ParsableArguments {
    @Option(help: "Address of the broker, on this machine.")
    var host = "127.0.0.1"

    @Option(help: "Port of the broker.")
    var port: UInt16 = 1883

    @Option(help: "Process number of the broker, for its CPU time and memory.")
    var pid: Int32?

    @Option(help: "Write the figures to this file as JSON.")
    var json: String?

    @Option(help: "Seconds without anything arriving after which a run is given up.")
    var patience = 10

    @Flag(help: "Connect with TLS; the certificate is not checked.")
    var tls = false

    @Flag(help: "Resume a TLS session instead of making a full handshake; needs --tls.")
    var resume = false

    @Flag(name: .customLong("mqtt5"), help: "Speak MQTT 5.0, without properties.")
    var speaks5 = false

    @Flag(help: "Show no progress.")
    var quiet = false

    mutating func validate() throws {
        guard (1...3_600).contains(patience) else {
            throw ValidationError("--patience takes 1 to 3600 seconds.")
        }
        guard tls || !resume else { throw ValidationError("--resume needs --tls.") }
        ClientPackets.speaks5 = speaks5
    }

    var patienceNanoseconds: UInt64 { UInt64(patience) * 1_000_000_000 }

    /// The TLS settings of the connections; `nil` for plain TCP.
    func clientTLS(_ address: BrokerAddress) throws(BenchFailure) -> ClientTLS? {
        guard tls else { return nil }
        let result = try ClientTLS()
        if resume {
            let name = RunNames().clientID("r", 0)
            try result.prime(
                address, connect: ClientPackets.connect(name, cleanSession: true))
        }
        return result
    }

    func address() throws(BenchFailure) -> BrokerAddress {
        let address = try BrokerAddress(host: host, port: port)
        try address.checkReachable()
        return address
    }

    func process() throws(BenchFailure) -> BrokerProcess? {
        guard let pid else { return nil }
        return try BrokerProcess(identifier: pid)
    }

    func publish(_ report: Report) throws(BenchFailure) {
        print(report.table)
        if let json { try report.json.write(to: json) }
    }
}
