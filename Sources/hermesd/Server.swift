import Addresses
import PushServices
import AdminAPI
import AdminTLS
import Authorization
import BanFiles
import BrokerCore
import BrokerRuntime
import BrokerAPI
import ConfiguredFiles
import Credentials
import Glibc
import LoginServices
import Logging
import OperatorConfiguration
import OperatorLog
import PlainText
import Store
import SystemFiles
import TLS
import UnixSignals
import Wakes
import Webhook

/// All parts of a running broker, with the order of start and shutdown.
struct Server {
    private let configuration: HermesConfiguration
    private let loader: ConfigurationLoader
    private let certificates: Certificates
    /// `nil` when the HTTP API speaks without TLS.
    private let adminCertificates: AdminCertificates?
    /// `nil` without a password file.
    private let passwords: PasswordChecks?
    /// `nil` without keys of tokens.
    private let tokenLogins: TokenLoginChecks?
    /// `nil` when the company's service is not asked.
    private let httpLogins: HTTPLoginChecks?
    /// `nil` without any of them.
    private let logins: LoginSources?
    private let tokens: TokenChecks
    private let bans: BanBook
    /// The ACL file and its rules at the start; `nil` without one.
    private let access: (file: AccessFile, rules: AccessRules)?
    /// `nil` when receipts are posted nowhere.
    private let webhook: WebhookSender?
    private let push: [WakeCredentials]
    /// `nil` without `wakes.webhook`.
    private let wakeWebhook: WebhookWakes?
    private let log: OperatorLog
    private let logger: Logger

    /// Time for a shutdown beyond its two drains, as reported to the service manager.
    private static let stopMargin = Duration.seconds(15)
    /// Time at a shutdown for moving the journal into the database.
    private static let storeStopMilliseconds: Int32 = 10_000

    /// Reads every file that the configuration names, and creates nothing. `loader` reads the
    /// configuration again at SIGHUP.
    ///
    /// - Throws: ``FileRefusals`` with all problems.
    init(
        _ configuration: HermesConfiguration, loader: ConfigurationLoader, log: OperatorLog
    ) throws(FileRefusals) {
        let logger = log.logger(label: "hermesd")
        var refusals = FileRefusals()
        let folder = configuration.dataDirectory
        let isFolderUsable =
            refusals.collect { () throws(DataFolder.Unusable) in
                try DataFolder.check(folder, owner: geteuid())
            } != nil
        // One mistake should give one complaint.
        let showsItsFiles = isFolderUsable || DataFolder.showsItsFiles(folder)
        let adminToken = Self.adminTokenVariable
        if showsItsFiles || adminToken != nil {
            _ = refusals.collect { () throws(AdminTokenError) in
                try AdminTokenFile(dataDirectory: folder).load(environmentValue: adminToken)
            }
        }
        let certificates = refusals.collect { () throws(TLSProblems) in
            try Certificates(configuration)
        }
        let adminCertificates = refusals.collect { () throws(AdminTLSUnusable) in
            try AdminCertificates(configuration.admin, logger: logger)
        }
        let passwords = refusals.collect(of: "password_file") {
            () throws(PasswordFileError) -> PasswordChecks? in
            guard let path = configuration.passwordFile else { return nil }
            return try PasswordChecks(path: path, logger: logger)
        }
        let tokenLogins = refusals.collect { () throws(TokenLoginChecks.Unusable) in
            try TokenLoginChecks(configuration, logger: logger)
        }
        let httpLogins = refusals.collect { () throws(LoginServiceFiles.Unusable) in
            try HTTPLoginChecks(configuration, logger: logger)
        }
        let tokens =
            showsItsFiles || configuration.admin.tokensFile != nil
            ? refusals.collect(of: configuration.tokensSetting) { () throws(TokenFileError) in
                try TokenChecks(path: configuration.tokensPath, logger: logger)
            } : nil
        let bans =
            showsItsFiles
            ? refusals.collect { () throws(BanFileError) in try BanBook(dataDirectory: folder) }
            : nil
        let access = refusals.collect(of: "acl_file") {
            () throws(AccessRulesError) -> (AccessFile, AccessRules)? in
            guard let path = configuration.aclFile else { return nil }
            let file = AccessFile(path: path, logger: logger)
            return (file, try file.start())
        }
        let webhook = refusals.collect { () throws(WebhookFiles.Unusable) in
            try WebhookSettings(configuration.webhook).map {
                (settings) throws(WebhookFiles.Unusable) in
                try WebhookSender(settings, logger: logger)
            }
        }
        let wakeWebhook = refusals.collect { () throws(WebhookFiles.Unusable) in
            try WebhookSettings(configuration.wakes.webhook, section: "wakes.webhook").map {
                (settings) throws(WebhookFiles.Unusable) in
                try WebhookWakes(settings, logger: logger)
            }
        }
        _ = refusals.collect { () throws(SystemZones.Unknown) in
            try SystemZones.check(configuration)
        }
        let push = refusals.collect { () throws(UnusablePushFile) in
            try WakeCredentials.all(configuration, logger: logger)
        }
        guard let certificates, let adminCertificates, let passwords, let tokenLogins,
            let httpLogins,
            let tokens, let access, let bans, let webhook, let wakeWebhook, let push,
            refusals.problems.isEmpty
        else { throw refusals }
        self.configuration = configuration
        self.loader = loader
        self.log = log
        self.logger = logger
        self.certificates = certificates
        self.adminCertificates = adminCertificates
        self.passwords = passwords
        self.tokenLogins = tokenLogins
        self.httpLogins = httpLogins
        logins = LoginSources(
            configuration, passwords: passwords, tokens: tokenLogins, service: httpLogins)
        self.tokens = tokens
        self.bans = bans
        self.access = access
        self.webhook = webhook
        self.wakeWebhook = wakeWebhook
        self.push = push
    }

    /// Runs until a signal or a failure; each element of `hangups` causes a reload.
    func run(hangups: UnixSignalsSequence) async throws {
        logStart()
        let directory = try DataDirectory(path: configuration.dataDirectory)
        let token = try adminToken(directory.path)
        let broker = try BrokerThread()
        let notification = ServiceNotification(
            environment: ProcessEnvironment.current(), logger: logger)
        let store = try openStore(directory.path, broker)
        let descriptorLimit = DescriptorTable.raiseLimit()
        DescriptorTable.reserve(descriptorLimit)
        logFewDescriptors(descriptorLimit)
        let settings = BrokerSettings(
            configuration, descriptorLimit: descriptorLimit, contexts: certificates.contexts)
        // Before this point a signal ends the process at once.
        let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        let listeners = try startBroker(broker, store, settings)
        var adminConfiguration = adminConfiguration(token, broker)
        adminConfiguration.listeners = settings.models(at: listeners)
        adminConfiguration.limits.fit(descriptors: descriptorLimit)
        let stop = BrokerStop(
            broker, notification, logger: logger,
            drainTimeout: configuration.limits.drainTimeout,
            margin: adminConfiguration.limits.drain + Self.stopMargin)
        let inForce = ConfigurationInForce(reload(broker, stop))
        adminConfiguration.control = inForce
        let admin = try AdminServer(
            configuration: adminConfiguration,
            broker: BrokerBridge(broker: broker, operations: store.operations),
            logger: logger)

        let folder = directory.path
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                try await admin.run { endpoints in
                    // Before the line that a script may wait for.
                    leaveAddress(adminURL(endpoints), in: folder)
                    logger.info(
                        "Admin API ready",
                        metadata: [
                            "admin.address": "\(Self.text(endpoints))",
                            "admin.socket": "\(endpoints.unixSocketPath ?? "none")",
                            "admin.tls": "\(adminCertificates == nil ? "off" : "on")",
                            "admin.url": "\(adminURL(endpoints))",
                        ])
                    notification.ready(listeners: listeners, admin: Self.text(endpoints))
                }
            }
            tasks.addTask {
                for await _ in hangups {
                    if stop.hasBegun {
                        logger.notice("Reload passed over, the broker is stopping")
                    } else {
                        inForce.reload()
                    }
                }
            }
            tasks.addTask {
                for await signal in signals { await stop.take("\(signal)") }
            }
            if let store = store.operations {
                tasks.addTask {
                    var watch = StoreWatch(logger: logger, figures: store.figures)
                    await watch.run { store.figures }
                }
            }
            if certificates.isUsed {
                tasks.addTask {
                    var watch = CertificateWatch(certificates, logger: logger)
                    await watch.run { use(certificates, broker, $0) }
                }
            }
            if let tokenLogins, tokenLogins.fetches {
                tasks.addTask { await tokenLogins.run() }
            }
            if let webhook {
                tasks.addTask { await webhook.run(BrokerFeed(broker: broker)) }
            }
            if let wakeWebhook {
                tasks.addTask { await wakeWebhook.run(broker) }
            }
            for sender in push {
                try sender.start(broker)
                tasks.addTask { await sender.watch() }
            }
            // The broker's thread ends only at a shutdown or by failing.
            tasks.addTask { try await broker.wait() }
            if notification.watchdogInterval != nil {
                tasks.addTask {
                    // The loop itself answers, so a loop that hangs is noticed.
                    await notification.watch { isAlive in
                        _ = broker.tell(.command(.status { _ in isAlive() }))
                    }
                }
            }
            defer { tasks.cancelAll() }
            defer { for sender in push { sender.stop() } }
            defer { httpLogins?.stop() }
            // The broker drains, whichever task ended first.
            let first = await tasks.nextResult()
            await stop.begin()
            try await broker.wait()
            close(store)
            try first?.get()
        }
        logger.info("Stopped")
    }

    private func logFewDescriptors(_ limit: Int) {
        guard limit <= 512 else { return }
        logger.warning(
            "Few descriptors for connections of clients and of the HTTP API",
            metadata: [
                "descriptors": "\(limit)",
                LogKeys.hint:
                    "raise the limit of open files: ulimit -n, or LimitNOFILE= of the unit",
            ])
    }

    private func logStart() {
        func path(_ path: String?) -> String { path.map { $0.visible(limit: 4_096) } ?? "none" }
        logger.info(
            "Hermes starts",
            metadata: [
                "version": "\(Hermesd.version)",
                "config": "\(path(loader.source.path))",
                "data_directory": "\(path(configuration.dataDirectory))",
                "durability": "\(durabilityName)",
                "password_file": "\(path(configuration.passwordFile))",
                "acl_file": "\(path(configuration.aclFile))",
            ])
        for door in configuration.openDoors {
            logger.warning(
                "Open to other machines",
                metadata: [
                    LogKeys.setting: "\(door.key)", LogKeys.hint: "\(door.text). \(door.cure)",
                ])
        }
    }

    /// Opens the store that earlier runs left; an empty one in memory with `durability: none`.
    private func openStore(
        _ directory: String, _ broker: BrokerThread
    ) throws -> any Store {
        var options = DurableStoreOptions()
        switch configuration.durability {
        case .none: return MemoryStore()
        case .sync: options.durability = .sync
        case .interval(let time):
            options.durability = .interval(milliseconds: Int32(clamping: Self.milliseconds(time)))
        }
        options.reserveBytes = UInt64(configuration.diskReserveBytes)
        options.largestMessageBytes = configuration.limits.maxPacketBytes
        options.factTables = FactTable.all
        // For crash tests: small segments move to the database often.
        if let text = ProcessEnvironment.current()["HERMES_JOURNAL_SEGMENT_BYTES"],
            let bytes = Int(text), bytes >= 65_536, bytes <= 1 << 28
        {
            options.journal = JournalOptions(segmentBytes: bytes)
        }
        let store = try DurableStore(directory: directory, options: options) { broker.wake() }
        let log = StoreLog(logger: logger)
        log.logRecovery(store.recovery)
        log.logDamage(in: directory)
        return store
    }

    private func close(_ store: any Store) {
        if !store.close(waitMilliseconds: Self.storeStopMilliseconds) {
            logger.warning(
                "The disk did not take all in time; the next start finishes what is left")
        }
    }

    /// Starts the broker's thread; returns the addresses once the listeners accept.
    private func startBroker(
        _ broker: BrokerThread, _ store: any Store, _ settings: BrokerSettings
    ) throws -> [String] {
        try broker.start(
            settings: settings, store: store, logins: logins?.check, access: access?.rules,
            bans: bans.table,
            identity: BrokerLoop.Identity(
                version: Hermesd.version, durability: durabilityName,
                durabilityIntervalMs: durabilityIntervalMs),
            logger: logger)
    }

    private func reload(_ broker: BrokerThread, _ stop: BrokerStop) -> Reload {
        var parts: [Reload.Part] = [
            Reload.Part(name: "token file", setting: configuration.tokensSetting) {
                let read = try tokens.read()
                return Reload.Prepared(
                    changed: tokens.isChanged(by: read) ? "admin.tokens_file" : nil
                ) {
                    tokens.use(read)
                    return true
                }
            }
        ]
        if certificates.isUsed {
            parts.append(
                Reload.Part(name: "TLS files") {
                    let read = try certificates.read()
                    return Reload.Prepared(
                        changed: certificates.isChanged(by: read) ? "listeners[].tls" : nil
                    ) { use(certificates, broker, read) }
                })
        }
        if let passwords { parts.append(passwords.part) }
        if let tokenLogins { parts.append(tokenLogins.part) }
        if let httpLogins { parts.append(httpLogins.part) }
        if let access { parts.append(access.file.part(broker)) }
        if let adminCertificates { parts.append(adminCertificates.part) }
        if let webhook { parts.append(webhook.credentials.part("webhook")) }
        if let wakeWebhook { parts.append(wakeWebhook.credentials.part("wakes.webhook")) }
        parts += push.map(\.part)
        return Reload(
            loader: loader, running: configuration, log: log, logger: logger, parts: parts
        ) { configuration in
            let limits = BrokerLimits(
                configuration, descriptorLimit: DescriptorTable.raiseLimit())
            // The next turns empty a full mailbox; otherwise the next reload tries again.
            guard broker.tell(.limits(limits)) else {
                logger.error("The broker is too busy to take the new limits; send SIGHUP again")
                return false
            }
            logins?.use(configuration)
            stop.limitDrain(to: configuration.limits.drainTimeout)
            return true
        }
    }

    /// Uses these certificates for new handshakes; false when the mailbox stays full.
    @discardableResult
    private func use(
        _ certificates: Certificates, _ broker: BrokerThread, _ read: Certificates.Read
    ) -> Bool {
        guard broker.tell(.certificates(read.contexts)) else {
            // The next turns empty a full mailbox.
            logger.error("The broker is too busy to take the new certificates; send SIGHUP again")
            return false
        }
        certificates.use(read)
        return true
    }

    private var durabilityName: String {
        switch configuration.durability {
        case .sync: "sync"
        case .interval: "interval"
        case .none: "none"
        }
    }

    private var durabilityIntervalMs: Int? {
        guard case .interval(let time) = configuration.durability else { return nil }
        return Self.milliseconds(time)
    }

    private static func milliseconds(_ time: Duration) -> Int { Int(time / .milliseconds(1)) }

    private func adminToken(_ directory: String) throws -> AdminToken {
        let file = AdminTokenFile(dataDirectory: directory)
        let (token, origin) = try file.loadOrCreate(environmentValue: Self.adminTokenVariable)
        if origin == .created {
            logger.info("Admin token made", metadata: ["file": "\(file.path)"])
        }
        return token
    }

    /// Compose files pass an unset variable as an empty one.
    private static var adminTokenVariable: String? {
        let value = ProcessEnvironment.current()[AdminTokenPlace.variable] ?? ""
        return value.isEmpty ? nil : value
    }

    private func adminConfiguration(
        _ token: AdminToken, _ broker: BrokerThread
    ) -> AdminServerConfiguration {
        var result = AdminServerConfiguration(
            token: token, durability: durabilityName, version: Hermesd.version)
        result.address = configuration.admin.address
        result.port = configuration.admin.port
        result.unixSocketPath = configuration.admin.unixSocket
        result.tokens = tokens
        result.bans = bans
        result.users = passwords.map { passwords in
            UserFile(path: passwords.path) { passwords.readIfChanged() }
        }
        result.accessRules = access.map { access in
            AccessRulesFile(path: access.file.path) { () throws(AccessRulesError) in
                try access.file.putInForce(broker)
            }
        }
        result.certificates = adminCertificates
        result.maximumFailuresPerMinute = configuration.admin.maxFailures
        result.servesPage = configuration.admin.servesPage
        result.maximumBodyBytes = configuration.limits.maxPacketBytes
        result.maximumTopicLevels = configuration.limits.maxTopicLevels
        result.orderTopicTemplate = configuration.orders.topicTemplate
        result.orderChannelTemplate = configuration.orders.channelTemplate
        result.orderQoS = configuration.orders.qos
        if let webhook { result.webhook = { webhook.figures } }
        if let httpLogins { result.loginService = { httpLogins.figures } }
        result.wakes = {
            func figures(_ kind: Device.Kind) -> PushFigures? {
                push.first { $0.kind == kind }?.figures
            }
            return WakeSenders(
                apns: figures(.apns), fcm: figures(.fcm), webhook: wakeWebhook?.figures)
        }
        result.receiptTopics = configuration.receipts.topics.compactMap { TokenTopic($0) }
        return result
    }

    /// Tells `hermesctl` on this machine where the API is, also on a port that was taken freely.
    private func leaveAddress(_ url: String, in directory: String) {
        do throws(SystemError) {
            try FileChange.replace(
                "\(directory)/\(AdminAddressPlace.fileName)", with: Array("\(url)\n".utf8))
        } catch {
            logger.warning(
                "The address of the API could not be written, hermesctl needs --url",
                metadata: ["error": "\(error)"])
        }
    }

    /// The URL for `hermesctl --url` on this machine.
    private func adminURL(_ endpoints: AdminEndpoints) -> String {
        let scheme = configuration.admin.tls.isOn ? "https" : "http"
        return switch endpoints.address {
        case "0.0.0.0": "\(scheme)://127.0.0.1:\(endpoints.port)"
        case "::": "\(scheme)://[::1]:\(endpoints.port)"
        default: "\(scheme)://\(Self.text(endpoints))"
        }
    }

    private static func text(_ endpoints: AdminEndpoints) -> String {
        IPAddress.text(host: endpoints.address, port: endpoints.port)
    }
}
