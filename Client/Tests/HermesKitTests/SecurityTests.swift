import Foundation
import NIOConcurrencyHelpers
import Testing

@testable import HermesKit
@testable import HermesClientCore

@Suite("TLS and credentials", .timeLimit(.minutes(2)))
struct SecurityTests {
    /// A certificate authority, a broker's certificate for localhost, and its pin.
    private struct Certificates {
        let folder = TestFolder()
        let pin: HermesClient.PublicKeyPin
        let other: HermesClient.PublicKeyPin
        let roots: [UInt8]

        init() throws {
            try """
            set -e
            openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 \
                -subj '/CN=test CA'
            openssl req -newkey rsa:2048 -nodes -keyout key.pem -out request.pem \
                -subj '/CN=localhost'
            printf 'subjectAltName=DNS:localhost,IP:127.0.0.1' > names
            openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial \
                -days 2 -extfile names -out cert.pem
            openssl pkey -in key.pem -pubout -outform der | openssl dgst -sha256 -binary \
                | base64 > pin
            openssl pkey -in ca.key -pubout -outform der | openssl dgst -sha256 -binary \
                | base64 > other
            """.write(
                toFile: folder.path + "/make", atomically: true, encoding: .utf8)
            try run("bash", "make", in: folder)
            let text = { [folder] (name: String) in
                try String(contentsOfFile: folder.path + "/" + name, encoding: .utf8)
            }
            pin = try .init(text("pin").trimmingCharacters(in: .whitespacesAndNewlines))
            other = try .init(
                "sha256/" + text("other").trimmingCharacters(in: .whitespacesAndNewlines))
            roots = Array(try text("ca.pem").utf8)
        }

        func broker() async throws -> TestBroker {
            try await TestBroker(
                folder: folder,
                ["certfile \(folder.path)/cert.pem", "keyfile \(folder.path)/key.pem"])
        }
    }

    /// The first reason for which a connection to `server` ended; "connected" if it did not.
    private func outcome(of server: HermesClient.Server) async throws -> String {
        let client = try HermesClient(.init(server, clientID: "phone", storage: .none))
        client.start()
        let outcome = await withTaskGroup(of: String?.self) { group in
            group.addTask { (try? await client.connected()).map { _ in "connected" } }
            group.addTask {
                for await case .dropped(let cause) in client.events {
                    return cause.description
                }
                return nil
            }
            let first = await group.next() ?? nil
            group.cancelAll()
            return first ?? "neither"
        }
        await client.stop()
        return outcome
    }

    @Test("12: roots, host and pin must all be right; nothing is trusted by default")
    func pins() async throws {
        let certificates = try Certificates()
        let broker = try await certificates.broker()
        let (pin, other) = (certificates.pin, certificates.other)
        let roots = HermesClient.Roots.pem(certificates.roots)
        for host in ["localhost", "127.0.0.1"] {
            let server = HermesClient.Server.tls(
                host, port: broker.port, pins: [other, pin], roots: roots)
            #expect(try await outcome(of: server) == "connected")
        }
        let third = try HermesClient.PublicKeyPin(
            Data(repeating: 7, count: 32).base64EncodedString())
        let wrong = HermesClient.Server.tls(
            "localhost", port: broker.port, pins: [other, third], roots: roots)
        #expect(
            try await outcome(of: wrong).contains("no pin is that of the broker's key, sha256/"))
        let system = HermesClient.Server.tls("localhost", port: broker.port, pins: [pin, other])
        #expect(try await outcome(of: system).contains("does not lead to a trusted root"))
        let elsewhere = HermesClient.Server.tls(
            "127.0.0.2", port: broker.port, pins: [pin, other], roots: roots)
        #expect(try await outcome(of: elsewhere) != "connected")
    }

    @Test("a certificate for another host is refused")
    func host() async throws {
        let certificates = try Certificates()
        let broker = try await certificates.broker()
        let server = HermesClient.Server.tls(
            "ip6-localhost", port: broker.port, pins: [certificates.pin, certificates.other],
            roots: .pem(certificates.roots))
        #expect(try await outcome(of: server) != "connected")
    }

    @Test(
        "credentials are asked for before the first connection, once more when refused, then no more"
    )
    func credentials() async throws {
        let folder = TestFolder()
        try run("mosquitto_passwd", "-b", "-c", "users", "seven", "secret", in: folder)
        let broker = try await TestBroker(
            folder: folder, ["password_file \(folder.path)/users", "allow_anonymous false"])
        let provider = Provider(["wrong", "secret"])
        let client = try HermesClient.of(
            broker,
            credentials: .refreshed { .init(userName: "seven", password: await provider.next()) })
        client.start()
        try await client.connected()
        #expect(await provider.asked == 2)
        await client.stop()

        let refused = try HermesClient.of(
            broker, credentials: .fixed(userName: "seven", password: "wrong"))
        refused.start()
        #expect(await refused.states.first { $0 == .stopped(.credentialsRefused) } != nil)

        let gone = try HermesClient.of(broker, credentials: .refreshed { nil })
        gone.start()
        #expect(await gone.states.first { $0 == .stopped(.credentialsRefused) } != nil)

        let failing = try HermesClient.of(
            broker, credentials: .refreshed { throw CancellationError() })
        failing.start()
        try await wait {
            if case .waiting(_, .retrying, _) = failing.state { return true }
            return false
        }
        await failing.stop()
    }

    @Test("the late answer to a question of before stop() logs nobody in")
    func lateAnswer() async throws {
        let broker = try await TestBroker()
        let questions = NIOLockedValueBox(0)
        let answered = NIOLockedValueBox(false)
        let client = try HermesClient.of(
            broker,
            credentials: .refreshed {
                let number = questions.withLockedValue { number in
                    number += 1
                    return number
                }
                guard number == 1 else { return .init(userName: "v", password: "") }
                // An app's code that does not look at its task.
                while questions.withLockedValue({ $0 }) < 2 { await Task.yield() }
                defer { answered.withLockedValue { $0 = true } }
                return .init(userName: "u", password: "")
            })
        client.start()
        try await wait { questions.withLockedValue { $0 } == 1 }
        await client.stop()
        client.start()
        try await client.connected()
        try await wait { answered.withLockedValue { $0 } }
        let user = try await client.engine.perform { $0.machine.credentials?.userName }
        #expect(user == Array("v".utf8))
        await client.stop()
    }

    @Test("stop() cancels the task that asks for credentials")
    func cancelledProvider() async throws {
        let broker = try await TestBroker()
        let provider = Provider([])
        let (never, continuation) = AsyncStream.makeStream(of: Void.self)
        defer { continuation.finish() }
        let client = try HermesClient.of(
            broker,
            credentials: .refreshed {
                await provider.noteAsked()
                // Ends only with the task.
                for await _ in never {}
                await provider.noteCancelled(Task.isCancelled)
                return nil
            })
        client.start()
        try await wait { await provider.asked == 1 }
        await client.stop()
        #expect(client.state == .stopped(.requested))
        try await wait { await provider.wasCancelled }
    }
}

private actor Provider {
    private var passwords: [String]
    private(set) var asked = 0

    init(_ passwords: [String]) { self.passwords = passwords }

    private(set) var wasCancelled = false

    func noteAsked() { asked += 1 }

    func noteCancelled(_ isCancelled: Bool) { wasCancelled = isCancelled }

    func next() -> String {
        asked += 1
        return passwords.isEmpty ? "none left" : passwords.removeFirst()
    }
}
