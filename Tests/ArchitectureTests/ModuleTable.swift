import Testing

/// One folder under Sources, with all its imports.
struct ModuleRow: Sendable, CustomTestStringConvertible {
    /// The folder below Sources.
    let folder: String
    /// The module name, where it differs from the folder's.
    let module: String
    /// Other modules under Sources, each in a row above this one.
    let own: Set<String>
    /// The system's modules, and those of packages.
    let outside: Set<String>

    init(_ folder: String, module: String? = nil, own: String = "", outside: String = "") {
        self.folder = folder
        self.module = module ?? folder
        self.own = Set(own.split(separator: " ").map(String.init))
        self.outside = Set(outside.split(separator: " ").map(String.init))
    }

    var testDescription: String { folder }

    /// All modules under Sources, lowest first: a row names only rows above it, so there is no
    /// cycle.
    static let all = [
        // C modules, which import no Swift module.
        ModuleRow("CArgon2"),
        ModuleRow("CCheckedPages"),
        ModuleRow("CChecksum"),
        ModuleRow("CHermesProtos"),
        ModuleRow("CLinux"),
        ModuleRow("CNgHTTP2"),
        ModuleRow("COpenAPI"),
        ModuleRow("COpenSSL"),
        ModuleRow("COperatorPage"),
        ModuleRow("CProtobufC"),
        ModuleRow("CSQLite"),
        ModuleRow("CYAML"),

        // Small modules without MQTT.
        ModuleRow("PlainText", outside: "Glibc"),
        ModuleRow("Addresses", outside: "Glibc"),
        ModuleRow("SystemFiles", own: "PlainText", outside: "Glibc"),
        ModuleRow("Structures"),
        ModuleRow("Threads", own: "CLinux", outside: "Glibc Synchronization"),
        ModuleRow(
            "OperatorLog", own: "PlainText SystemFiles", outside: "Glibc Logging Synchronization"),

        // The protocol: values and machines, without input and output.
        ModuleRow("MQTTCodec"),
        ModuleRow("MQTTCore", own: "MQTTCodec Structures"),

        // Commands, answers, figures and limits, for the data plane and the admin plane.
        ModuleRow("TimeZones"),
        ModuleRow(
            "BrokerAPI", own: "Addresses MQTTCodec Structures TimeZones",
            outside: "Synchronization"),

        // Sockets, the disk and the operator's files, without the protocol.
        ModuleRow(
            "TLS", own: "CLinux COpenSSL PlainText SystemFiles", outside: "Glibc Synchronization"),
        ModuleRow(
            "Transport", own: "Addresses CLinux COpenSSL Structures SystemFiles TLS",
            outside: "Glibc Synchronization"),
        ModuleRow(
            "Store",
            own: "CCheckedPages CChecksum CLinux CSQLite PlainText Structures SystemFiles Threads",
            outside: "Glibc Synchronization"),
        ModuleRow("LineFiles", own: "PlainText SystemFiles", outside: "Glibc"),
        ModuleRow(
            "Credentials", own: "CArgon2 COpenSSL LineFiles PlainText SystemFiles",
            outside: "Glibc Synchronization"),
        ModuleRow("Authorization", own: "PlainText Structures SystemFiles", outside: "Glibc"),
        ModuleRow(
            "Configuration", module: "OperatorConfiguration",
            own: "Addresses BrokerAPI CYAML MQTTCodec PlainText SystemFiles TimeZones",
            outside: "Glibc"),
        ModuleRow(
            "AdminTLS", own: "PlainText SystemFiles", outside: "NIOCore NIOPosix NIOSSL"),
        ModuleRow(
            "Webhook", own: "AdminTLS BrokerAPI Credentials OperatorLog PlainText SystemFiles",
            outside: """
                AsyncHTTPClient FoundationEssentials Glibc Logging NIOCore NIOPosix NIOSSL \
                Synchronization
                """),
        ModuleRow("RequestText", own: "PlainText", outside: "Glibc"),
        ModuleRow("BanFiles", own: "Addresses BrokerAPI LineFiles PlainText RequestText"),
        ModuleRow(
            "Logins",
            own: "Authorization COpenSSL Credentials PlainText RequestText SystemFiles",
            outside: "Glibc Synchronization"),
        ModuleRow(
            "PushServices",
            own: """
                BrokerAPI CLinux CNgHTTP2 COpenSSL PlainText RequestText SystemFiles Threads
                """,
            outside: "Glibc Synchronization"),
        ModuleRow("HermesMessages", own: "CHermesProtos PlainText Structures"),
        ModuleRow(
            "Wakes",
            own: """
                BrokerAPI CLinux HermesMessages OperatorLog PlainText PushServices RequestText \
                Webhook
                """,
            outside: "Logging Synchronization"),
        ModuleRow(
            "LoginServices",
            own: """
                AdminTLS Authorization BrokerAPI Credentials Logins OperatorLog PlainText \
                SystemFiles
                """,
            outside: "AsyncHTTPClient Logging NIOCore NIOPosix NIOSSL Synchronization"),
        ModuleRow(
            "ConfiguredFiles",
            own: """
                AdminTLS Credentials LoginServices Logins OperatorConfiguration PlainText \
                PushServices SystemFiles TLS TimeZones Webhook
                """,
            outside: "Glibc"),
        ModuleRow("Explanations", own: "Authorization BrokerAPI PlainText"),

        // The data plane, the admin plane, and the programs.
        ModuleRow(
            "BrokerCore",
            own: "Addresses Authorization BrokerAPI MQTTCodec MQTTCore Store Structures",
            outside: "Glibc"),
        ModuleRow(
            "BrokerFeatures",
            own: """
                Addresses Authorization BrokerAPI BrokerCore MQTTCodec MQTTCore Store Structures \
                TimeZones
                """,
            outside: "Glibc"),
        ModuleRow(
            "BrokerRuntime",
            own: """
                Addresses Authorization BrokerAPI BrokerCore BrokerFeatures CLinux MQTTCodec MQTTCore \
                OperatorLog PlainText Store Structures SystemFiles TLS Threads Transport
                """,
            outside: "Glibc Logging Synchronization"),
        ModuleRow(
            "AdminAPI",
            own: """
                Addresses AdminTLS Authorization BanFiles BrokerAPI COpenAPI COperatorPage \
                Credentials Explanations HermesMessages MQTTCodec OperatorLog PlainText RequestText Structures \
                SystemFiles
                """,
            outside: """
                FoundationEssentials Glibc Hummingbird HummingbirdCore Logging NIOCore NIOHTTP1 \
                NIOPosix NIOSSL NIOTLS Synchronization
                """),
        ModuleRow(
            "OperatorCLI",
            own: """
                Addresses AdminTLS Authorization BanFiles BrokerAPI ConfiguredFiles \
                Credentials Explanations LoginServices Logins OperatorConfiguration PlainText \
                PushServices Store SystemFiles TLS Webhook
                """,
            outside: """
                ArgumentParser AsyncHTTPClient FoundationEssentials Glibc NIOCore NIOPosix NIOSSL
                """),
        ModuleRow("hermesctl", own: "OperatorCLI", outside: "Glibc"),
        ModuleRow(
            "hermesd",
            own: """
                Addresses AdminAPI AdminTLS Authorization BanFiles BrokerAPI BrokerCore \
                BrokerFeatures BrokerRuntime \
                CLinux ConfiguredFiles Credentials LoginServices Logins OperatorConfiguration \
                OperatorLog PlainText PushServices Store SystemFiles TLS Wakes Webhook
                """,
            outside: "ArgumentParser Glibc Logging Synchronization UnixSignals"),
    ]

    /// The only module that imports both sockets and protocol.
    static let joinSocketsAndProtocol: Set = ["BrokerRuntime"]
    static let sockets: Set = ["Transport"]
    static let `protocol`: Set = ["MQTTCodec", "MQTTCore"]

    /// Folders whose files have at most ``mostLines`` lines.
    static let foldersOfShortFiles = [
        "Client/Sources/HermesClientCore", "Sources/AdminAPI", "Sources/Authorization",
        "Sources/BrokerAPI", "Sources/BrokerCore", "Sources/BrokerFeatures",
        "Sources/Configuration", "Sources/LoginServices", "Sources/Logins", "Sources/MQTTCodec",
        "Sources/MQTTCore",
        "Sources/OperatorCLI",
        "Sources/OperatorLog",
        "Sources/Structures", "Sources/TLS", "Sources/Threads", "Sources/Wakes", "Sources/Webhook",
    ]
    static let mostLines = 350
}
