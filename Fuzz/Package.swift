// swift-tools-version: 6.2
import PackageDescription

/// The fuzz targets are a package of their own, so that a plain build of the broker needs no fuzzer;
/// `scripts/fuzz` builds and runs them (docs/fuzzing.md).
///
/// The modules of broker and client under `Sources/` are links: what they declare is visible within one package
/// only, and here they are compiled with the fuzzer's instrumentation. The settings are the broker's.
let swiftSettings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    .unsafeFlags(["-cross-module-optimization"], .when(configuration: .release)),
]

func module(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: swiftSettings)
}

let package = Package(
    name: "hermes-fuzz",
    targets: [
        .target(name: "CLinux"),
        .systemLibrary(
            name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .target(name: "CChecksum", cSettings: [.unsafeFlags(["-O2"])]),
        .target(
            name: "CCheckedPages", dependencies: ["CChecksum", "CSQLite"],
            cSettings: [.unsafeFlags(["-O2"])]),
        module("Addresses"),
        module("PlainText"),
        module("SystemFiles", ["PlainText"]),
        module("Structures"),
        module("MQTTCodec"),
        module("MQTTCore", ["Structures", "MQTTCodec"]),
        .systemLibrary(
            name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
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
        module("TimeZones"),
        module("BrokerAPI", ["Addresses", "MQTTCodec", "Structures", "TimeZones"]),
        .systemLibrary(
            name: "CYAML", pkgConfig: "yaml-0.1", providers: [.apt(["libyaml-dev"])]),
        .target(
            name: "OperatorConfiguration",
            dependencies: [
                "Addresses", "BrokerAPI", "CYAML", "MQTTCodec", "PlainText", "SystemFiles",
                "TimeZones",
            ],
            path: "Sources/Configuration", swiftSettings: swiftSettings),
        module("RequestText", ["PlainText"]),
        .systemLibrary(
            name: "CArgon2", pkgConfig: "libargon2", providers: [.apt(["libargon2-dev"])]),
        module("LineFiles", ["PlainText", "SystemFiles"]),
        module("Credentials", ["CArgon2", "COpenSSL", "LineFiles", "PlainText", "SystemFiles"]),
        module(
            "Logins",
            [
                "Authorization", "COpenSSL", "Credentials", "PlainText", "RequestText",
                "SystemFiles",
            ]),
        module(
            "BrokerCore",
            [
                "Addresses", "Authorization", "BrokerAPI", "MQTTCodec", "MQTTCore", "Store",
                "Structures",
            ]),
        module(
            "BrokerFeatures",
            [
                "Addresses", "Authorization", "BrokerAPI", "BrokerCore", "MQTTCodec", "MQTTCore",
                "Store", "Structures", "TimeZones",
            ]),
        module("HermesClientCore", ["MQTTCodec"]),
        .systemLibrary(
            name: "CNgHTTP2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),
        module(
            "PushServices",
            [
                "BrokerAPI", "CLinux", "CNgHTTP2", "COpenSSL", "PlainText", "RequestText",
                "SystemFiles", "Threads",
            ]),
        module("HermesTesting", ["Structures", "MQTTCodec", "MQTTCore", "Store"]),
        module(
            "FuzzChecks",
            [
                "PushServices", "Authorization", "BrokerAPI", "BrokerCore", "BrokerFeatures",
                "Credentials",
                "HermesClientCore", "HermesTesting", "LineFiles", "Logins", "MQTTCodec", "MQTTCore",
                "OperatorConfiguration", "PlainText", "RequestText", "Store", "Structures", "TLS",
                "Transport",
            ]),
        // libFuzzer brings `main`; the one that SwiftPM wants of a program gets another name.
        .executableTarget(
            name: "hermes-fuzz", dependencies: ["FuzzChecks"],
            swiftSettings: swiftSettings + [
                .unsafeFlags([
                    "-parse-as-library", "-Xfrontend", "-entry-point-function-name", "-Xfrontend",
                    "hermes_fuzz_main",
                ])
            ]),
    ]
)
