import Testing

@testable import OperatorConfiguration

@Suite("A configuration that is read again")
struct ConfigurationChangeTests {
    @Test("changes nothing when it is the same")
    func same() throws {
        let change = ConfigurationChange(from: try load(""), to: try load(""))
        #expect(change.applied.isEmpty && change.deferred.isEmpty)
        #expect(change.configuration == HermesConfiguration())
    }

    @Test("every key is either applied or waits for the next start", arguments: Setting.all)
    func everyKey(setting: Setting) throws {
        let value = try #require(changedValues[setting.pattern])
        let running = HermesConfiguration()
        var read = running
        try setting.assign(value, 0, &read)

        let change = ConfigurationChange(from: running, to: read)

        let key = setting.key(at: 0)
        #expect(change.applied == (setting.isReloadable ? [key] : []))
        #expect(change.deferred == (setting.isReloadable ? [] : [key]))
        #expect(change.configuration == (setting.isReloadable ? read : running))
    }

    @Test("a limit that follows max_packet follows the one that runs, as the new one waits")
    func derivedLimits() throws {
        let running = try load("limits: {max_packet: 64MiB}")
        #expect(running.limits.queueBytes == 64 << 20)
        #expect(running.limits.unfinishedBytes == 256 << 20)
        for yaml in ["", "limits: {max_packet: 100KiB}", "limits: {max_packet: 128MiB}"] {
            let read = try ConfigurationLoader(source: .text(yaml, name: "hermes.yaml"))
                .load(whileRunning: running)
            let change = ConfigurationChange(from: running, to: read)
            #expect(change.applied.isEmpty, "\(yaml)")
            #expect(change.deferred.last == "limits.max_packet", "\(yaml)")
            #expect(change.configuration == running, "\(yaml)")
        }
        let explicit = try ConfigurationLoader(
            source: .text("limits: {queue_bytes: 1MiB}", name: "hermes.yaml")
        ).load(whileRunning: running)
        #expect(ConfigurationChange(from: running, to: explicit).applied == ["limits.queue_bytes"])
    }

    @Test("another number of listeners waits for the next start")
    func listeners() throws {
        let read = try load("listeners: [{port: 1883}, {port: 1884}]")
        let change = ConfigurationChange(from: HermesConfiguration(), to: read)
        #expect(change.deferred == ["listeners"])
        #expect(change.configuration.listeners.count == 1)
    }
}
