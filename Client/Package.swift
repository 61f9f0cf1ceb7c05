// swift-tools-version: 6.2
import PackageDescription

/// The client is a package of its own, so that an app resolves nothing of what the broker needs.
///
/// `Sources/MQTTCodec` is a link to the broker's. There are no unsafe flags, because a package that
/// has them cannot be a dependency by version.
let swiftSettings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
]

let package = Package(
    name: "hermes-client",
    platforms: [.iOS(.v15), .macOS(.v12)],
    products: [
        .library(name: "HermesClientCore", targets: ["HermesClientCore"])
    ],
    targets: [
        .target(name: "MQTTCodec", swiftSettings: swiftSettings),
        .target(
            name: "HermesClientCore", dependencies: ["MQTTCodec"], swiftSettings: swiftSettings),
        .testTarget(
            name: "HermesClientCoreTests", dependencies: ["HermesClientCore", "MQTTCodec"],
            swiftSettings: swiftSettings),
    ]
)
