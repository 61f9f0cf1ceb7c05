import AdminTLS
import ConfiguredFiles
import Credentials
import Glibc
import OperatorConfiguration
import PlainText
import SystemFiles
import TLS

/// Loads the TLS files of a configuration as the broker does, for `config check`.
struct TLSFileCheck {
    /// Seconds before expiry from which a file is warned about, as in the broker.
    private static let warningSeconds: Int64 = 14 * 86_400

    private let now = Int64(time(nil))
    private var refusals = FileRefusals()
    private var over: [String] = []

    /// The problems, one or more lines each.
    var problems: [String] { refusals.problems + over }
    /// Warnings about files that expire soon, one line each.
    private(set) var warnings: [String] = []

    init(_ configuration: HermesConfiguration) {
        let tickets = TicketKeys()
        for settings in configuration.listenersTLS {
            guard let settings else { continue }
            let context = refusals.collect { () throws(TLSProblems) in
                try TLSContext(settings, tickets: tickets)
            }
            for ending in context?.endings ?? [] { judge(Ending(ending)) }
        }
        guard let settings = AdminTLSSettings(configuration.admin.tls) else { return }
        let loaded = refusals.collect { () throws(AdminTLSUnusable) in
            try AdminTLSLoader.load(settings)
        }
        guard let loaded else { return }
        judge(
            Ending(
                key: "admin.tls.certificate", file: settings.certificate, time: loaded.expires,
                begins: loaded.begins,
                cure: "renew it; the broker reads the files by itself when they change"))
        if let file = settings.clientCAFile, let time = loaded.authoritiesExpire {
            judge(
                Ending(
                    key: "admin.tls.client_ca_file", file: file, time: time,
                    cure: "put its successor in the file; callers whom it vouches for do not get in"
                ))
        }
    }

    /// A file that expires.
    fileprivate struct Ending {
        var key: String
        var file: String
        /// Time of expiry, in seconds since 1970.
        var time: Int64
        /// Time from which it is valid; `nil` for what has no such time.
        var begins: Int64?
        var cure: String
    }

    /// A broker starts with an expired file, so that everything else works, but its clients cannot
    /// connect.
    private mutating func judge(_ ending: Ending) {
        let place = "\(ending.key): \"\(VisibleText.escaped(ending.file))\""
        if let begins = ending.begins, begins > now {
            over.append(
                "\(place) is not valid before \(UTCTime(clamping: begins)), and clients refuse it "
                    + "until then. Give one that is valid now, or set this machine's clock.")
        }
        guard ending.time < now + Self.warningSeconds else { return }
        let cure = "\(ending.cure.prefix(1).uppercased())\(ending.cure.dropFirst())."
        if ending.time <= now {
            over.append("\(place) is over since \(UTCTime(clamping: ending.time)). \(cure)")
        } else {
            warnings.append(
                "warning: \(place) ends on \(UTCTime(clamping: ending.time)). \(cure)")
        }
    }
}

extension TLSFileCheck.Ending {
    fileprivate init(_ ending: TLSContext.Ending) {
        self.init(
            key: ending.key, file: ending.file, time: ending.time, begins: ending.begins,
            cure: ending.cure)
    }
}
