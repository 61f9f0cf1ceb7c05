import HermesKit
import Testing

@Suite("Streams", .timeLimit(.minutes(2)))
struct StreamTests {
    @Test("nothing is lost between CONNECT and the first loop, and the order stays")
    func lateLoop() async throws {
        let broker = try await TestBroker()
        let client = try HermesClient.of(broker)
        client.start()
        try await client.subscribe("news/#", qos: .atLeastOnce)
        let texts = (0..<200).map { "message \($0)" }
        for text in texts { _ = try await client.publish(.init(topic: "news/1", text: text)) }
        try await wait { await client.recentMessages().count >= 20 }
        #expect(await client.take(200).map(\.text) == texts)
        await client.stop()
    }

    @Test("8: a resumed session's messages wait for the loop and are not thrown away")
    func resumedSession() async throws {
        let broker = try await TestBroker()
        let folder = TestFolder()
        do {
            let client = try HermesClient.of(broker, storage: .file(folder.path + "/log"))
            client.start()
            try await client.subscribe("news/#", qos: .exactlyOnce)
            await client.stop()
        }
        let office = try HermesClient.of(broker, id: "office")
        office.start()
        for number in 0..<50 {
            let receipt = try await office.publish(.init(topic: "news/1", text: "\(number)"))
            try await receipt.acknowledged
        }
        await office.stop()
        let client = try HermesClient.of(broker, storage: .file(folder.path + "/log"))
        client.start()
        #expect(try await client.connected())
        try await wait { await client.recentMessages().count >= 20 }
        #expect(await client.take(50).map(\.text) == (0..<50).map(String.init))
        await client.stop()
    }

    @Test("9: without acknowledge() the broker keeps the message, and the next program gets it")
    func unacknowledged() async throws {
        let broker = try await TestBroker()
        let folder = TestFolder()
        for round in 0..<2 {
            let client = try HermesClient.of(broker, storage: .file(folder.path + "/log"))
            client.start()
            if round == 0 {
                try await client.subscribe("news", qos: .atLeastOnce)
                _ = try await client.publish(.init(topic: "news", text: "keep me"))
            }
            var iterator = client.deliveries.makeAsyncIterator()
            #expect(await iterator.next()?.text == "keep me")
            await client.stop()
        }
    }

    @Test("each message goes to one of several loops")
    func severalLoops() async throws {
        let broker = try await TestBroker()
        let client = try HermesClient.of(broker)
        client.start()
        try await client.subscribe("news", qos: .atLeastOnce)
        let taken = try await withThrowingTaskGroup(of: [String].self) { group in
            for _ in 0..<4 {
                group.addTask {
                    var texts: [String] = []
                    for await delivery in client.deliveries {
                        delivery.acknowledge()
                        texts.append(delivery.text)
                    }
                    return texts
                }
            }
            for number in 0..<400 {
                let receipt = try await client.publish(.init(topic: "news", text: "\(number)"))
                if number % 100 == 99 { try await receipt.acknowledged }
            }
            try await wait { await client.recentMessages().count == 400 }
            await client.stop()
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(taken.compactMap(Int.init).sorted() == Array(0..<400))
    }

    @Test("parts of an app look at the messages of a filter, each at all of them")
    func observers() async throws {
        let broker = try await TestBroker()
        let client = try HermesClient.of(broker)
        client.start()
        try await client.subscribe("a/#", qos: .atLeastOnce)
        let loops = [client.messages(matching: "a/+"), client.messages(matching: "a/2")].map {
            $0.makeAsyncIterator()
        }
        for number in 1...3 {
            _ = try await client.publish(.init(topic: "a/\(number)", text: "\(number)"))
        }
        #expect(await client.take(3).map(\.text) == ["1", "2", "3"])
        await client.stop()
        var texts: [[String]] = []
        for loop in loops {
            var seen: [String] = []
            while let message = await loop.next() { seen.append(message.text) }
            texts.append(seen)
        }
        #expect(texts == [["1", "2", "3"], ["2"]])
    }

    @Test("stop() ends every loop, behind the state that tells of it; start() begins anew")
    func stopEnds() async throws {
        let broker = try await TestBroker()
        let client = try HermesClient.of(broker)
        for _ in 0..<3 {
            client.start()
            async let states = client.states.reduce(into: []) { $0.append($1) }
            async let events = client.events.reduce(into: []) { $0.append($1) }
            async let deliveries = client.deliveries.reduce(into: []) { $0.append($1) }
            try await client.connected()
            await client.stop()
            #expect(await states.last == .stopped(.requested))
            #expect(await events.isEmpty)
            #expect(await deliveries.isEmpty)
        }
    }

    @Test("a cancelled task leaves its loop, and takes nothing with it")
    func cancelledLoops() async throws {
        let broker = try await TestBroker()
        let client = try HermesClient.of(broker)
        client.start()
        try await client.subscribe("news", qos: .atLeastOnce)
        for _ in 0..<100 {
            let loops = Task {
                async let events: Void = { for await _ in client.events {} }()
                async let states: Void = { for await _ in client.states {} }()
                for await delivery in client.deliveries { Issue.record("\(delivery)") }
                _ = await (events, states)
            }
            loops.cancel()
            await loops.value
        }
        _ = try await client.publish(.init(topic: "news", text: "for the last"))
        #expect(await client.take(1).map(\.text) == ["for the last"])
        await client.stop()
    }

    @Test("15: every loop over the states sees the present one and each change")
    func states() async throws {
        let broker = try await TestBroker()
        let client = try HermesClient.of(broker)
        let early = client.states.makeAsyncIterator()
        client.start()
        try await client.connected()
        let late = client.states.makeAsyncIterator()
        await client.enteredBackground()
        #expect(client.state == .suspended)
        client.enteredForeground()
        try await client.connected()
        await client.stop()
        let beginning: [HermesClient.State] = [
            .stopped(.notStarted), .connecting(attempt: 1), .connected(sessionPresent: false),
        ]
        let ends: [HermesClient.State] = [
            .suspended, .connecting(attempt: 1), .connected(sessionPresent: true),
            .stopped(.requested),
        ]
        var seen: [HermesClient.State] = []
        while let state = await early.next() { seen.append(state) }
        #expect(seen == beginning + ends)
        seen = []
        while let state = await late.next() { seen.append(state) }
        #expect(seen == [.connected(sessionPresent: false)] + ends)
    }
}
