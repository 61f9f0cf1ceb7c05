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

let apple: TargetDependencyCondition? = .when(
    platforms: [.iOS, .macOS, .macCatalyst, .tvOS, .visionOS])
/// Where the system has no TLS of its own.
let linux: TargetDependencyCondition? = .when(platforms: [.linux])

// Apple asks for it. On Linux a resource would bring in the whole of Foundation.
#if os(Linux)
    let (resources, unused): ([Resource]?, [String]) = (nil, ["PrivacyInfo.xcprivacy"])
#else
    let (resources, unused): ([Resource]?, [String]) = ([.copy("PrivacyInfo.xcprivacy")], [])
#endif

let package = Package(
    name: "hermes-client",
    platforms: [.iOS(.v15), .macOS(.v12), .tvOS(.v15), .visionOS(.v1)],
    products: [
        .library(name: "HermesKit", targets: ["HermesKit"]),
        .library(name: "HermesObjC", targets: ["HermesObjC"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.80.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.0"),
        .package(url: "https://github.com/apple/swift-nio-transport-services", from: "1.24.0"),
        // Its traits bring in more of Foundation than is needed.
        .package(url: "https://github.com/apple/swift-protobuf", from: "1.36.0", traits: []),
    ],
    targets: [
        .target(name: "MQTTCodec", swiftSettings: swiftSettings),
        .target(
            name: "HermesClientCore", dependencies: ["MQTTCodec"], swiftSettings: swiftSettings),
        .target(
            name: "HermesClientMessages",
            dependencies: [
                "HermesClientCore",
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ],
            swiftSettings: swiftSettings),
        .target(
            name: "HermesClientNIO",
            dependencies: [
                "HermesClientCore",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: linux),
                .product(name: "NIOTLS", package: "swift-nio"),
                .product(
                    name: "NIOTransportServices", package: "swift-nio-transport-services",
                    condition: apple),
            ],
            swiftSettings: swiftSettings),
        .target(
            name: "HermesKit",
            dependencies: [
                "HermesClientCore", "HermesClientMessages", "HermesClientNIO", "MQTTCodec",
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
            ],
            exclude: unused, resources: resources, swiftSettings: swiftSettings),
        // Empty where there is no Objective-C.
        .target(name: "HermesObjC", dependencies: ["HermesKit"], swiftSettings: swiftSettings),
        // Example and benchmark are no products: who depends on the package does not fetch what they
        // need.
        .executableTarget(
            name: "hermes-phone",
            dependencies: [
                "HermesKit",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            path: "Examples/hermes-phone", swiftSettings: swiftSettings),
        .executableTarget(
            name: "client-bench",
            dependencies: [
                "HermesClientMessages", "HermesKit",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ],
            path: "Benchmarks/client-bench", swiftSettings: swiftSettings),
        .testTarget(
            name: "HermesClientCoreTests", dependencies: ["HermesClientCore", "MQTTCodec"],
            swiftSettings: swiftSettings),
        .testTarget(
            name: "HermesClientMessagesTests",
            dependencies: [
                "HermesClientCore", "HermesClientMessages",
                .product(name: "SwiftProtobuf", package: "swift-protobuf"),
            ],
            swiftSettings: swiftSettings),
        .testTarget(
            name: "HermesKitTests",
            dependencies: [
                "HermesClientCore", "HermesClientNIO", "HermesKit",
                .product(name: "NIOEmbedded", package: "swift-nio"),
            ],
            swiftSettings: swiftSettings),
    ]
)
