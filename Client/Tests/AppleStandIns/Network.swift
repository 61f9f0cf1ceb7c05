@_exported import Foundation
@_exported import Security

public final class NWProtocolTLS {
    public final class Options: @unchecked Sendable {
        public init() {}

        public var securityProtocolOptions: sec_protocol_options_t {
            fatalError("a declaration only")
        }
    }
}

public enum NWError: Error {
    case posix(POSIXErrorCode)
    case dns(Int32)
    case tls(OSStatus)
}

public enum NWEndpoint: Hashable, Sendable {
    public struct Host: Hashable, Sendable {
        public init(_ string: String) {}
    }

    public struct Port: Hashable, Sendable, ExpressibleByIntegerLiteral {
        public init?(rawValue: UInt16) {}

        public init(integerLiteral value: UInt16) {}
    }

    case hostPort(host: Host, port: Port)
    case opaque(String)
}

public final class NWParameters: @unchecked Sendable {
    public final class PrivacyContext: @unchecked Sendable {
        public init(description: String) {}

        public var proxyConfigurations: [ProxyConfiguration] = []
    }

    public func setPrivacyContext(_ context: PrivacyContext) {}
}

public struct ProxyConfiguration: Sendable {
    public init(
        httpCONNECTProxy endpoint: NWEndpoint, tlsOptions options: NWProtocolTLS.Options? = nil
    ) {}

    public mutating func applyCredential(username: String, password: String) {}
}

public final class NWInterface: @unchecked Sendable {
    public enum InterfaceType: Sendable {
        case other, wifi, cellular, wiredEthernet, loopback
    }

    public let name = ""
    public let type = InterfaceType.wifi
}

public struct NWPath: Sendable {
    public enum Status: Sendable {
        case satisfied, unsatisfied, requiresConnection
    }

    public let status = Status.satisfied
    public let availableInterfaces: [NWInterface] = []
    public let gateways: [NWEndpoint] = []
}

public final class NWPathMonitor: @unchecked Sendable {
    public init() {}

    public var pathUpdateHandler: (@Sendable (_ newPath: NWPath) -> Void)?

    public func start(queue: DispatchQueue) {}

    public func cancel() {}
}
