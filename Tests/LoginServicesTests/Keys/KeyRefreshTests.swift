import Logging
import Logins
import Synchronization
import Testing

@testable import LoginServices

@Suite("Fetched keys")
struct KeyRefreshTests {
    /// A login service whose answers a test chooses.
    private final class Service: KeyFetching {
        private let state = Mutex((answers: [Result<[UInt8], KeyFetchFailure>](), fetches: 0))
        let begun: AsyncStream<Int>
        private let count: AsyncStream<Int>.Continuation

        init(_ answers: Result<[UInt8], KeyFetchFailure>...) {
            (begun, count) = AsyncStream.makeStream()
            state.withLock { $0.answers = answers }
        }

        func fetch() async -> Result<[UInt8], KeyFetchFailure> {
            let (answer, number) = state.withLock { state in
                state.fetches += 1
                let last = state.answers.count == 1
                return (last ? state.answers[0] : state.answers.removeFirst(), state.fetches)
            }
            count.yield(number)
            return answer
        }

        var fetches: Int { state.withLock { $0.fetches } }

        func close() {}
    }

    private static func document(_ name: String) -> [UInt8] {
        Array(
            #"""
            {"keys":[{"kty":"OKP","crv":"Ed25519","kid":"\#(name)",\#
            "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}
            """#.utf8)
    }

    private func refresh(every interval: Duration, least: Duration) -> KeyRefresh {
        var logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        logger.logLevel = .critical
        return KeyRefresh(
            KeyURL(url: "http://127.0.0.1:1/", caFile: nil, refresh: interval),
            authorities: nil, logger: logger, leastInterval: least)
    }

    /// Runs until so many fetches have begun, then as `body` wants; returns the names of all keys
    /// that were handed out.
    private func run(
        _ refresh: KeyRefresh, _ service: Service, untilFetch last: Int,
        _ body: @Sendable () async -> Void = {}
    ) async -> [String] {
        let used = Names()
        let running = Task {
            await refresh.run(service) { used.add($0) }
        }
        for await number in service.begun where number >= last { break }
        await body()
        running.cancel()
        await running.value
        return used.all
    }

    /// The names of keys that were handed out.
    private final class Names: Sendable {
        private let names = Mutex<[String]>([])

        func add(_ keys: KeySet) -> Bool {
            names.withLock { $0 += keys.keys.compactMap(\.identifier?.string) }
            return true
        }

        var all: [String] { names.withLock { $0 } }
    }

    @Test("keys are fetched at the start and at each interval")
    func interval() async {
        let service = Service(
            .success(Self.document("a")), .success(Self.document("b")),
            .success(Self.document("c")))
        let refresh = refresh(every: .milliseconds(1), least: .seconds(600))
        let used = await run(refresh, service, untilFetch: 3)
        #expect(used.starts(with: ["a", "b"]))
    }

    @Test("a failed attempt hands out nothing and is made again soon, not at the next interval")
    func failure() async {
        let service = Service(
            .failure(KeyFetchFailure(reason: "refused")), .success(Array("{}".utf8)),
            .success(Self.document("a")))
        let refresh = refresh(every: .seconds(3_600), least: .milliseconds(1))
        let used = await run(refresh, service, untilFetch: 3)
        #expect(used.allSatisfy { $0 == "a" })
    }

    @Test("an unknown key has them fetched at once, and not again within the least interval")
    func request() async {
        let service = Service(.success(Self.document("a")), .success(Self.document("b")))
        let seldom = refresh(every: .seconds(3_600), least: .seconds(600))
        // Before the first attempt, its answer is awaited.
        #expect(seldom.request())
        _ = await run(seldom, service, untilFetch: 1) {
            // The first attempt may still be under way, after which the next one is far.
            while seldom.request() { await Task.yield() }
            for _ in 0..<100 { #expect(!seldom.request()) }
        }
        #expect(service.fetches == 1)

        let often = refresh(every: .seconds(3_600), least: .zero)
        let other = Service(.success(Self.document("a")), .success(Self.document("b")))
        let used = await run(often, other, untilFetch: 1) {
            while other.fetches < 2 {
                #expect(often.request())
                await Task.yield()
            }
        }
        #expect(used.first == "a")
    }
}
