// swift-tools-version: 6.2
import PackageDescription

/// Our own code compiles in Swift 6 mode without a warning. Release builds optimise across our
/// modules, because the packet path crosses four of them (docs/decisions/0002).
let swiftSettings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    .unsafeFlags(["-cross-module-optimization"], .when(configuration: .release)),
]

func module(
    _ name: String, path: String? = nil, _ dependencies: [Target.Dependency] = []
) -> Target {
    .target(name: name, dependencies: dependencies, path: path, swiftSettings: swiftSettings)
}

/// A module that only tests and fuzzers use.
func testSupport(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .target(
        name: name, dependencies: dependencies, path: "TestSupport/\(name)",
        swiftSettings: swiftSettings)
}

func program(
    _ name: String, path: String? = nil, _ dependencies: [Target.Dependency]
) -> Target {
    .executableTarget(
        name: name, dependencies: dependencies, path: path, swiftSettings: swiftSettings)
}

func tests(_ name: String, path: String? = nil, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, path: path, swiftSettings: swiftSettings)
}

let package = Package(
    name: "hermes",
    products: [
        .executable(name: "hermesd", targets: ["hermesd"]),
        .executable(name: "hermesctl", targets: ["hermesctl"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.80.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.0"),
        // Its traits bring in swift-configuration and the whole of Foundation with its ICU data.
        .package(
            url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0", traits: []),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.30.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.8.0"),
    ],
    targets: [
        // System and C parts.
        .target(name: "CLinux"),
        .systemLibrary(
            name: "CArgon2", pkgConfig: "libargon2", providers: [.apt(["libargon2-dev"])]),
        .systemLibrary(
            name: "CProtobufC", pkgConfig: "libprotobuf-c",
            providers: [.apt(["libprotobuf-c-dev"])]),
        .target(name: "CHermesProtos", dependencies: ["CProtobufC"]),
        .systemLibrary(
            name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(
            name: "CYAML", pkgConfig: "yaml-0.1", providers: [.apt(["libyaml-dev"])]),
        .systemLibrary(
            name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(
            name: "CNgHTTP2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),
        .target(name: "COpenAPI", exclude: ["openapi.json"]),
        .target(
            name: "COperatorPage",
            exclude: ["mqtt.js", "page.css", "page.html", "page.js", "tail.js", "text.js"]),
        .target(name: "CChecksum", cSettings: [.unsafeFlags(["-O2"])]),
        .target(
            name: "CCheckedPages", dependencies: ["CChecksum", "CSQLite"],
            cSettings: [.unsafeFlags(["-O2"])]),

        // The data plane: pure values first, input and output around them.
        module("PlainText"),
        module("Addresses"),
        module("SystemFiles", ["PlainText"]),
        module("Structures"),
        module("MQTTCodec"),
        module("MQTTCore", ["Structures", "MQTTCodec"]),
        module("TLS", ["CLinux", "COpenSSL", "PlainText", "SystemFiles"]),
        module(
            "Transport", ["Addresses", "CLinux", "COpenSSL", "Structures", "SystemFiles", "TLS"]),
        module("Threads", ["CLinux"]),
        module(
            "Store",
            [
                "CCheckedPages", "CChecksum", "CLinux", "CSQLite", "PlainText", "Structures",
                "SystemFiles", "Threads",
            ]),
        module("Authorization", ["PlainText", "Structures", "SystemFiles"]),
        // What both planes say to each other.
        module("BrokerAPI", ["Addresses", "MQTTCodec", "Structures"]),
        // The shard: the protocol without input and output.
        module(
            "BrokerCore",
            [
                "Addresses", "Authorization", "BrokerAPI", "MQTTCodec", "MQTTCore", "Store",
                "Structures",
            ]),
        // What follows the shard: features of the admin plane and of waking phones.
        module(
            "BrokerFeatures",
            [
                "Addresses", "Authorization", "BrokerAPI", "BrokerCore", "MQTTCodec", "MQTTCore",
                "Store", "Structures",
            ]),
        // The loop: the one place where sockets and protocol meet.
        module(
            "BrokerRuntime",
            [
                "Addresses", "Authorization", "BrokerAPI", "BrokerCore", "BrokerFeatures", "CLinux",
                "MQTTCodec", "MQTTCore", "OperatorLog", "PlainText", "Store", "Structures",
                "SystemFiles", "TLS",
                "Threads",
                "Transport",
                .product(name: "Logging", package: "swift-log"),
            ]),

        // The admin plane.
        module(
            "AdminAPI",
            [
                "Addresses", "AdminTLS", "Authorization", "BanFiles", "BrokerAPI", "COpenAPI",
                "COperatorPage", "Credentials", "Explanations", "HermesMessages", "MQTTCodec",
                "OperatorLog",
                "PlainText", "RequestText", "Structures", "SystemFiles",
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "HummingbirdCore", package: "hummingbird"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOTLS", package: "swift-nio"),
            ]),
        .target(
            name: "OperatorConfiguration",
            dependencies: [
                "Addresses", "BrokerAPI", "CYAML", "MQTTCodec", "PlainText", "SystemFiles",
            ],
            path: "Sources/Configuration", swiftSettings: swiftSettings),
        module(
            "AdminTLS",
            [
                "PlainText", "SystemFiles",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ]),
        module(
            "ConfiguredFiles",
            [
                "APNs", "AdminTLS", "Credentials", "LoginServices", "Logins",
                "OperatorConfiguration",
                "PlainText", "SystemFiles", "TLS", "Webhook",
            ]),
        // Text files of one entry a line, which people and the broker change.
        module("LineFiles", ["PlainText", "SystemFiles"]),
        module("BanFiles", ["Addresses", "BrokerAPI", "LineFiles", "PlainText", "RequestText"]),
        module("Credentials", ["CArgon2", "COpenSSL", "LineFiles", "PlainText", "SystemFiles"]),
        // Tokens of a company's login and the answers of its service, without input and output, and
        // the order in which the sources of a login decide.
        module(
            "Logins",
            [
                "Authorization", "COpenSSL", "Credentials", "PlainText", "RequestText",
                "SystemFiles",
            ]),
        // Fetches the keys of tokens, and asks the service.
        module(
            "LoginServices",
            [
                "AdminTLS", "Authorization", "BrokerAPI", "Credentials", "Logins", "OperatorLog",
                "PlainText", "SystemFiles",
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ]),
        // The sender of receipts to a back office.
        module(
            "Webhook",
            [
                "AdminTLS", "BrokerAPI", "Credentials", "OperatorLog", "PlainText", "SystemFiles",
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ]),
        // The sender of notifications to Apple's push service.
        module(
            "APNs",
            [
                "BrokerAPI", "CLinux", "CNgHTTP2", "COpenSSL", "PlainText", "RequestText",
                "SystemFiles", "Threads",
            ]),
        // Owed wakes on their way from the broker to a sender.
        module(
            "Wakes",
            [
                "APNs", "BrokerAPI", "CLinux", "HermesMessages", "OperatorLog", "PlainText",
                "RequestText", "Webhook",
                .product(name: "Logging", package: "swift-log"),
            ]),
        module("HermesMessages", ["CHermesProtos", "PlainText", "Structures"]),
        // What became of clients and messages, in plain words.
        module("Explanations", ["Authorization", "BrokerAPI", "PlainText"]),
        module("RequestText", ["PlainText"]),
        module(
            "OperatorCLI",
            [
                "APNs", "Addresses", "AdminTLS", "Authorization", "BanFiles", "BrokerAPI",
                "ConfiguredFiles", "Credentials", "Explanations", "LoginServices", "Logins",
                "OperatorConfiguration", "PlainText", "Store", "SystemFiles", "TLS", "Webhook",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ]),
        module(
            "OperatorLog",
            ["PlainText", "SystemFiles", .product(name: "Logging", package: "swift-log")]),

        // What tests and fuzzers share.
        testSupport("HermesTesting", ["Structures", "MQTTCodec", "MQTTCore", "Store"]),
        testSupport(
            "BrokerTesting",
            [
                "Authorization", "BrokerAPI", "BrokerCore", "BrokerFeatures", "HermesTesting",
                "MQTTCodec", "MQTTCore", "Store", "Structures",
            ]),
        // The client's core, for the simulation of phones and broker and for fuzzing; it is the
        // package in Client/.
        .target(
            name: "HermesClientCore", dependencies: ["MQTTCodec"],
            path: "Client/Sources/HermesClientCore", swiftSettings: swiftSettings),
        testSupport(
            "FuzzChecks",
            [
                "APNs", "Addresses", "Authorization", "BrokerAPI", "BrokerCore", "BrokerFeatures",
                "Credentials", "HermesClientCore", "HermesTesting", "LineFiles", "Logins",
                "MQTTCodec",
                "MQTTCore",
                "OperatorConfiguration", "PlainText", "RequestText",
                "Store", "Structures", "TLS", "Transport",
            ]),

        program(
            "hermesd",
            [
                "APNs", "Addresses", "AdminAPI", "AdminTLS", "Authorization", "BanFiles",
                "BrokerAPI", "BrokerCore", "BrokerFeatures", "BrokerRuntime",
                "CLinux", "ConfiguredFiles", "Credentials", "LoginServices", "Logins",
                "OperatorConfiguration", "OperatorLog", "PlainText", "Store", "SystemFiles", "TLS",
                "Wakes", "Webhook",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ]),
        program("hermesctl", ["OperatorCLI"]),

        tests(
            "APNsTests",
            ["APNs", "BrokerAPI", "CNgHTTP2", "COpenSSL", "HermesTesting", "SystemFiles"]),
        tests("WakesTests", ["BrokerAPI", "HermesMessages", "RequestText", "Wakes"]),
        tests("PlainTextTests", ["PlainText"]),
        tests("AddressesTests", ["Addresses"]),
        tests("SystemFilesTests", ["HermesTesting", "SystemFiles"]),
        tests("RequestTextTests", ["HermesTesting", "PlainText", "RequestText"]),
        tests("ArchitectureTests", []),
        tests("StructuresTests", ["Structures", "HermesTesting"]),
        tests("MQTTCodecTests", ["MQTTCodec", "HermesTesting"]),
        tests("MQTTCoreTests", ["MQTTCore", "MQTTCodec", "Structures", "HermesTesting"]),
        tests("FuzzCorpusTests", ["FuzzChecks"]),
        tests("ThreadsTests", ["Threads"]),
        tests("TLSTests", ["COpenSSL", "HermesTesting", "TLS"]),
        tests(
            "StoreTests",
            [
                "CCheckedPages", "CChecksum", "CSQLite", "HermesTesting", "Store", "Structures",
                "Threads",
            ]),
        tests(
            "ConformanceTests",
            [
                "BrokerCore", "BrokerFeatures", "BrokerTesting", "HermesTesting", "MQTTCodec",
                "MQTTCore", "Store", "Structures",
            ]),
        tests(
            "TransportTests",
            ["Addresses", "HermesTesting", "Structures", "SystemFiles", "Transport"]),
        tests(
            "BrokerCoreTests",
            [
                "Addresses", "Authorization", "BrokerAPI", "BrokerCore", "BrokerFeatures",
                "BrokerTesting", "CHermesProtos",
                "HermesTesting", "MQTTCodec", "MQTTCore", "Store", "Structures",
            ]),
        tests(
            "ClientSimulationTests",
            [
                "BrokerAPI", "BrokerCore", "BrokerFeatures", "BrokerTesting", "HermesClientCore",
                "HermesTesting", "MQTTCodec", "Store", "Structures",
            ]),
        tests(
            "BrokerRuntimeTests",
            [
                "Addresses", "BrokerAPI", "BrokerCore", "BrokerFeatures", "BrokerRuntime",
                "HermesTesting", "MQTTCodec", "Structures", "TLS", "Transport",
            ]),
        tests(
            "AdminAPITests",
            [
                "Addresses", "AdminAPI", "AdminTLS", "BanFiles", "BrokerAPI", "BrokerTesting",
                "CHermesProtos", "Credentials", "MQTTCodec", "PlainText", "RequestText",
                "Structures",
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "Logging", package: "swift-log"),
            ]),
        tests(
            "OperatorLogTests",
            ["OperatorLog", "PlainText", .product(name: "Logging", package: "swift-log")]),
        tests("ConfigurationTests", ["BrokerAPI", "OperatorConfiguration"]),
        tests("AuthorizationTests", ["Authorization", "HermesTesting"]),
        tests(
            "LoginsTests",
            [
                "Authorization", "COpenSSL", "Credentials", "HermesTesting", "Logins", "PlainText",
                "RequestText",
            ]),
        tests(
            "LoginServicesTests",
            [
                "BrokerAPI", "Credentials", "LoginServices", "Logins",
                .product(name: "Logging", package: "swift-log"),
            ]),
        tests(
            "CredentialsTests",
            ["Credentials", "HermesTesting", "LineFiles", "PlainText", "SystemFiles"]),
        tests(
            "OperatorCLITests",
            [
                "BrokerAPI", "Credentials", "Explanations", "OperatorCLI", "SystemFiles",
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ]),
        tests(
            "WebhookTests",
            [
                "BrokerAPI", "Credentials", "HermesTesting", "Webhook",
                .product(name: "Logging", package: "swift-log"),
            ]),
        tests("ExplanationsTests", ["BrokerAPI", "Explanations"]),
        tests("HermesMessagesTests", ["CHermesProtos", "HermesMessages", "PlainText"]),
    ]
)

// scripts/test compiles the tests of the nested packages together with the broker's, so that SwiftNIO,
// BoringSSL and our own modules are compiled once for all. Without the variable, a build of the broker
// resolves and compiles nothing that only client and load generator need. An architecture test holds
// these targets equal to those of the packages' own manifests.
if Context.environment["TEST_ALL_PACKAGES"] != nil {
    package.dependencies.append(
        .package(url: "https://github.com/apple/swift-protobuf", from: "1.36.0", traits: []))
    package.targets += [
        .target(name: "CBench", path: "Benchmarks/Sources/CBench"),
        program(
            "login-bench", path: "Benchmarks/Sources/login-bench", ["COpenSSL", "Logins"]),
        program(
            "store-bench", path: "Benchmarks/Sources/store-bench",
            [
                "CBench", "CSQLite", "Store",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
        program(
            "hermes-bench", path: "Benchmarks/Sources/hermes-bench",
            [
                "CBench", "CLinux", "COpenSSL", "MQTTCodec", "Structures", "SystemFiles",
                "Transport",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
        tests(
            "HermesBenchTests", path: "Benchmarks/Tests/HermesBenchTests",
            ["hermes-bench", "MQTTCodec", "Structures"]),

        module(
            "HermesClientMessages", path: "Client/Sources/HermesClientMessages",
            [
                "HermesClientCore",
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ]),
        module(
            "HermesClientNIO", path: "Client/Sources/HermesClientNIO",
            [
                "HermesClientCore",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOTLS", package: "swift-nio"),
            ]),
        .target(
            name: "HermesKit",
            dependencies: [
                "HermesClientCore", "HermesClientMessages", "HermesClientNIO", "MQTTCodec",
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
            ],
            path: "Client/Sources/HermesKit", exclude: ["PrivacyInfo.xcprivacy"],
            swiftSettings: swiftSettings),
        module("HermesObjC", path: "Client/Sources/HermesObjC", ["HermesKit"]),
        program(
            "hermes-phone", path: "Client/Examples/hermes-phone",
            [
                "HermesKit",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
        program(
            "client-bench", path: "Client/Benchmarks/client-bench",
            [
                "HermesClientMessages", "HermesKit",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ]),
        tests(
            "HermesClientCoreTests", path: "Client/Tests/HermesClientCoreTests",
            ["HermesClientCore", "MQTTCodec"]),
        tests(
            "HermesClientMessagesTests", path: "Client/Tests/HermesClientMessagesTests",
            [
                "HermesClientCore", "HermesClientMessages",
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ]),
        tests(
            "HermesKitTests", path: "Client/Tests/HermesKitTests",
            [
                "HermesClientCore", "HermesClientNIO", "HermesKit",
                .product(name: "NIOEmbedded", package: "swift-nio"),
            ]),
    ]
}
