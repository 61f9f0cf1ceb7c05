/// A host name with its port.
package struct ServiceEndpoint: Sendable, Equatable {
    package var host: String
    package var port: UInt16

    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }
}
