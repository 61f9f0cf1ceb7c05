import ArgumentParser
import Dispatch
import HermesKit

/// The phone of the tour: prints messages as JSON, a line each, and everything else on standard
/// error.
@main
struct HermesPhone: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hermes-phone",
        abstract: "Holds the channel as a phone does and prints what comes.",
        discussion: """
            Messages go to standard output, a line of JSON each, and are acknowledged when they are \
            written. States and losses go to standard error. Lines on standard input are what \
            happens to a phone:

              background         the app leaves the screen
              foreground         the app is on the screen again
              wake               a push notification wakes the app in the background
              now                the user wants a connection now
              network LABEL      the device uses another network; without LABEL, none
              publish TOPIC TEXT publishes with the QoS of --qos
              subscribe FILTER
              unsubscribe FILTER
              device TOKEN APP   has this phone woken by Apple: token in hexadecimal digits, and
                                 the app's bundle identifier; without both, no more
              outbox             lists what the broker has not taken over
              retry NUMBER       sends a message that is held back again
              discard NUMBER     takes a message out of the outbox
              statistics         prints the counters
              stop               disconnects and ends, as the end of input, SIGINT and SIGTERM do
            """)

    @OptionGroup var connection: ConnectionOptions

    @Option(
        name: [.customLong("subscribe"), .customShort("s")], help: "Topic filter; may be repeated.")
    var filters: [String] = []

    @Option(help: "QoS of subscriptions and of what is published, 0 to 2.")
    var qos = 1

    @Flag(help: "Go on when standard input ends.")
    var ignoreInputEnd = false

    @Flag(help: "Leave messages unacknowledged: they come again.")
    var neverAcknowledge = false

    func validate() throws {
        guard HermesClient.QoS(rawValue: UInt8(clamping: qos)) != nil else {
            throw ValidationError("--qos \(qos): 0, 1 or 2 is needed")
        }
    }

    func run() async throws {
        let client: HermesClient
        do {
            client = try HermesClient(try connection.configuration())
        } catch {
            Console.note("cannot begin: \(error)")
            throw ExitCode(1)
        }
        let qos = HermesClient.QoS(rawValue: UInt8(clamping: qos)) ?? .atLeastOnce
        let (commands, continuation) = AsyncStream.makeStream(of: PhoneCommand.self)
        let inputs = PhoneInputs(continuation, endsWithInput: !ignoreInputEnd)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await printMessages(of: client) }
            group.addTask {
                for await state in client.states { Console.note("state: \(state)") }
            }
            group.addTask {
                for await event in client.events { Console.note("event: \(event)") }
            }
            client.start()
            for filter in filters { group.addTask { await subscribe(client, filter, qos) } }
            for await command in commands {
                if case .stop = command { return await client.stop() }
                group.addTask { await perform(command, client, qos) }
            }
            await client.stop()
        }
        inputs.cancel()
    }

    private func printMessages(of client: HermesClient) async {
        for await delivery in client.deliveries {
            Console.message(delivery.line)
            if !neverAcknowledge { delivery.acknowledge() }
        }
    }

    private func subscribe(
        _ client: HermesClient, _ filter: String, _ qos: HermesClient.QoS
    ) async {
        do {
            let granted = try await client.subscribe(filter, qos: qos)
            Console.note("subscribed: \(filter.visible) with QoS \(granted.rawValue)")
        } catch {
            Console.note("not subscribed: \(filter.visible): \("\(error)".visible)")
        }
    }

    private func perform(
        _ command: PhoneCommand, _ client: HermesClient, _ qos: HermesClient.QoS
    ) async {
        switch command {
        case .stop: break
        case .background: await client.enteredBackground()
        case .foreground: client.enteredForeground()
        case .now: client.reconnectNow()
        case .wake: await client.wokenByPush()
        case .network(let label): client.networkChanged(to: label)
        case .subscribe(let filter): await subscribe(client, filter, qos)
        case .unsubscribe(let filter):
            do {
                try await client.unsubscribe(filter)
                Console.note("unsubscribed: \(filter.visible)")
            } catch {
                Console.note("not unsubscribed: \(filter.visible): \("\(error)".visible)")
            }
        case .publish(let topic, let text):
            await report(topic) {
                try await client.publish(.init(topic: topic, text: text, qos: qos))
            }
        case .device(let token, let bundle):
            await report("device") { try await client.registerDevice(token: token, bundle: bundle) }
        case .forgetDevice:
            await report("no device") { try await client.forgetDevice() }
        case .outbox:
            for message in await client.outbox() { Console.note(message.sentence) }
            Console.note("that is the outbox")
        case .retry(let id):
            Console.note(await client.retry(id) ? "retried: \(id)" : "not held back: \(id)")
        case .discard(let id):
            Console.note(await client.discard(id) ? "discarded: \(id)" : "not there: \(id)")
        case .statistics: Console.note(await client.statistics().sentence)
        case .unknown(let line):
            Console.note("\"\(line.visible)\" is no command; --help lists them")
        }
    }

    /// Says what becomes of something that is published.
    private func report(
        _ name: String, _ publish: () async throws -> HermesClient.PublishReceipt
    ) async {
        do {
            let receipt = try await publish()
            Console.note("published: \(name.visible)")
            try await receipt.acknowledged
            Console.note("acknowledged: \(name.visible)")
        } catch {
            Console.note("not published: \(name.visible): \("\(error)".visible)")
        }
    }
}
