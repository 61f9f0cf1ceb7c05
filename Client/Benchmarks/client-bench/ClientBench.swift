import ArgumentParser
import Dispatch
import HermesKit
import HermesClientMessages
import SwiftProtobuf

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Measures the whole client, transport and storage included, against a broker on this machine.
@main
struct ClientBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "client-bench",
        abstract: "Memory of idle clients, and CPU for each message published and received.")

    @Option(help: "Port of a broker on loopback that lets anonymous clients in.")
    var port = 1883

    @Option(help: "Clients that are connected and idle.")
    var clients = 1_000

    @Option(help: "Messages that one client publishes with QoS 1 and receives.")
    var messages = 1_000_000

    @Option(help: "Folder for the clients' files.")
    var folder = "/tmp"

    func run() async throws {
        try measureDecoding()
        try await measureIdle()
        try await measureMessages()
    }

    /// What an order status costs beyond its way through the core: its facts for the check, the
    /// Envelope for the app, and the update in it, as a value or as JSON.
    private func measureDecoding() throws {
        let topic = Array("orders/7/4711/status".utf8)
        let payload: [UInt8] = try Hermes_V1_Envelope.with {
            $0.messageID = "01a20a76-a4ce-7335-bb7f-c0fb7fd95190"
            $0.topic = "orders/7/4711/status"
            $0.channel = "orders/7"
            $0.publishedAtMs = 1_795_471_877_326
            $0.contentType = OrderStatusReader.contentType
            $0.sequence = 4_711
            $0.payload = try Hermes_V1_OrderStatusUpdate.with {
                $0.orderID = "4711"
                $0.salesID = "7"
                $0.status = .approved
                $0.reason = "all documents are there"
                $0.updatedAtMs = 1_795_471_877_326
            }.serializedBytes()
        }.serializedBytes()
        let rounds = 200_000
        var bytes = 0
        func each(_ work: () -> Int) -> Double {
            let begin = Resources.cpuSeconds
            for _ in 0..<rounds { bytes += work() }
            let microseconds = (Resources.cpuSeconds - begin) / Double(rounds) * 1e6
            return Double(Int(microseconds * 100)) / 100
        }
        func update() -> Hermes_V1_OrderStatusUpdate? {
            MessageReader.envelope(topic: topic, payload: payload).flatMap {
                OrderStatusReader.update(contentType: $0.contentType, payload: $0.payload)
            }
        }
        let facts = each { MessageReader.facts(topic: topic, payload: payload) == nil ? 0 : 1 }
        let value = each { update()?.orderID.utf8.count ?? 0 }
        let json = each { update().flatMap { OrderStatusReader.json($0) }?.utf8.count ?? 0 }
        print(
            "decoding \(payload.count) bytes: facts \(facts) us, order status \(value) us, ",
            terminator: "")
        print("the same as JSON \(json) us (\(bytes / rounds) bytes)")
    }

    private func measureIdle() async throws {
        // The first one brings the threads of NIO.
        let first = try client("first")
        try await connect(first)
        let before = Resources.residentBytes
        var idle: [HermesClient] = []
        for number in 0..<clients {
            let client = try client("idle-\(number)")
            idle.append(client)
            try await connect(client)
        }
        let bytes = Resources.residentBytes - before
        print("idle: \(bytes / max(clients, 1)) bytes of memory each, \(clients) clients")
        for client in idle { await client.stop() }
        await first.stop()
    }

    private func measureMessages() async throws {
        let client = try client("busy")
        try await connect(client)
        try await client.subscribe("bench/#", qos: .atLeastOnce)
        let payload = [UInt8](repeating: 120, count: 200)
        let tenth = max(messages / 10, 1)
        let cpu = Resources.cpuSeconds
        async let received: Int = {
            var count = 0
            for await delivery in client.deliveries {
                delivery.acknowledge()
                count += 1
                if count % tenth == 0 {
                    print("\(count) messages: \(Resources.residentBytes >> 10) KiB of memory")
                }
                if count == messages { break }
            }
            return count
        }()
        var last: HermesClient.PublishReceipt?
        for number in 0..<messages {
            last = try await client.publish(.init(topic: "bench/1", payload: payload))
            // Some room is left in the outbox.
            if number % 500 == 499 { try await last?.acknowledged }
        }
        try await last?.acknowledged
        let count = await received
        let each = (Resources.cpuSeconds - cpu) / Double(max(count, 1)) * 1e6
        print("CPU: \(Double(Int(each * 100)) / 100) us for each message, published and received")
        await client.stop()
    }

    private func client(_ name: String) throws -> HermesClient {
        let path = "\(folder)/client-bench-\(getpid())-\(name)"
        defer {
            unlink(path)
            unlink(path + ".lock")
        }
        return try HermesClient(
            .init(.plain("127.0.0.1", port: port), clientID: name, storage: .file(path)))
    }

    private func connect(_ client: HermesClient) async throws {
        client.start()
        for await state in client.states {
            if case .connected = state { return }
        }
    }
}

/// What the system says of this process.
enum Resources {
    static var residentBytes: Int {
        #if canImport(Glibc) || canImport(Musl)
            var pages = [CChar](repeating: 0, count: 128)
            guard let file = fopen("/proc/self/statm", "r") else { return 0 }
            defer { fclose(file) }
            fgets(&pages, 128, file)
            let fields = String(decoding: pages.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
                .split(separator: " ")
            return (fields.count > 1 ? Int(fields[1]) ?? 0 : 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
        #else
            var usage = rusage()
            getrusage(RUSAGE_SELF, &usage)
            return usage.ru_maxrss
        #endif
    }

    static var cpuSeconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
