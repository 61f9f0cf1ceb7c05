import AdminAPI
import AdminTLS
import ConfiguredFiles
import Logging
import OperatorConfiguration

extension AdminCertificates {
    /// Reads the files that a checked configuration names. `nil` for plain HTTP, which is logged as
    /// a warning beyond loopback.
    convenience init?(
        _ admin: HermesConfiguration.Admin, logger: Logger
    ) throws(AdminTLSUnusable) {
        guard let settings = AdminTLSSettings(admin.tls) else {
            if !admin.isLoopback {
                logger.warning(
                    "The HTTP API is spoken without TLS: whoever listens on the way learns its tokens",
                    metadata: ["admin.address": "\(admin.address)"])
            }
            return nil
        }
        try self.init(settings, logger: logger)
    }

    /// The certificates' part in a reload.
    var part: Reload.Part {
        Reload.Part(name: "certificate of the HTTP API") {
            let read = try self.read()
            return Reload.Prepared(changed: self.isChanged(by: read) ? "admin.tls" : nil) {
                self.use(read)
                return true
            }
        }
    }
}
