// swift-tools-version: 6.2
import PackageDescription

/// The load generator is a package of its own, so that a plain build of the broker needs none of it.
///
/// The folders of the broker's modules under `Sources/` are links to the broker's: what they declare
/// is visible within one package only. The settings are the broker's.
let swiftSettings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    .unsafeFlags(["-cross-module-optimization"], .when(configuration: .release)),
]

func module(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: swiftSettings)
}

let package = Package(
    name: "hermes-benchmarks",
    products: [
        .executable(name: "hermes-bench", targets: ["hermes-bench"]),
        .executable(name: "store-bench", targets: ["store-bench"]),
        .executable(name: "login-bench", targets: ["login-bench"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0")
    ],
    targets: [
        .target(name: "CLinux"),
        .target(name: "CBench"),
        .target(name: "CChecksum", cSettings: [.unsafeFlags(["-O2"])]),
        .target(
            name: "CCheckedPages", dependencies: ["CChecksum", "CSQLite"],
            cSettings: [.unsafeFlags(["-O2"])]),
        .systemLibrary(
            name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        module("Addresses"),
        module("PlainText"),
        module("SystemFiles", ["PlainText"]),
        module("Structures"),
        module("MQTTCodec"),
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
        .systemLibrary(
            name: "CArgon2", pkgConfig: "libargon2", providers: [.apt(["libargon2-dev"])]),
        module("LineFiles", ["PlainText", "SystemFiles"]),
        module("Credentials", ["CArgon2", "COpenSSL", "LineFiles", "PlainText", "SystemFiles"]),
        module("Authorization", ["PlainText", "Structures", "SystemFiles"]),
        module("RequestText", ["PlainText"]),
        module(
            "Logins",
            [
                "Authorization", "COpenSSL", "Credentials", "PlainText", "RequestText",
                "SystemFiles",
            ]),
        .executableTarget(
            name: "login-bench", dependencies: ["COpenSSL", "Logins"],
            swiftSettings: swiftSettings),
        .executableTarget(
            name: "store-bench",
            dependencies: [
                "CBench", "CSQLite", "Store",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: swiftSettings),
        .executableTarget(
            name: "hermes-bench",
            dependencies: [
                "CBench", "CLinux", "COpenSSL", "MQTTCodec", "Structures", "SystemFiles",
                "Transport",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: swiftSettings),
        .testTarget(
            name: "HermesBenchTests",
            dependencies: ["hermes-bench", "MQTTCodec", "Structures"],
            swiftSettings: swiftSettings),
    ]
)
