import CBench
import Glibc

/// The loopback address of a broker.
struct BrokerAddress: Sendable, CustomStringConvertible {
    private static var probeMilliseconds: CInt { 3_000 }

    /// IPv4, in host byte order, within 127.0.0.0/8.
    let address: UInt32
    let port: UInt16

    /// Throws for anything but a loopback address: load belongs on no other machine.
    init(host: String, port: UInt16) throws(BenchFailure) {
        var parsed = in_addr()
        guard inet_pton(AF_INET, host == "localhost" ? "127.0.0.1" : host, &parsed) == 1,
            UInt32(bigEndian: parsed.s_addr) >> 24 == 127
        else {
            throw BenchFailure(
                "--host \(Text.visible(host)) is no address of this machine. "
                    + "Give 127.0.0.1 or localhost: hermes-bench loads brokers over loopback only.")
        }
        address = UInt32(bigEndian: parsed.s_addr)
        self.port = port
    }

    var description: String {
        "\(address >> 24).\(address >> 16 & 0xFF).\(address >> 8 & 0xFF).\(address & 0xFF):\(port)"
    }

    /// Makes one connection and closes it.
    func checkReachable() throws(BenchFailure) {
        let code = bench_probe(address, port, Self.probeMilliseconds)
        guard code != 0 else { return }
        throw BenchFailure(
            "no broker answers at \(self): \(String(cString: strerror(code))). "
                + "Start it, or name its port with --port.")
    }
}
