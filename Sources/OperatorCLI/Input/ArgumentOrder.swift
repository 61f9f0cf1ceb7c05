/// Lets options that choose the broker, the token and the form of the output stand before the command
/// too: `hermesctl --url URL status` is `hermesctl status --url URL`.
enum ArgumentOrder {
    private static let valued: Set<String> = [
        "--url", "--socket", "--ca-file", "--client-certificate", "--client-key", "--token-file",
        "--data-directory", "--config", "--timeout",
    ]
    private static let flags: Set<String> = ["--json"]

    /// The arguments with such options behind the command, before a `--`.
    static func commandFirst(_ arguments: [String]) -> [String] {
        var rest = arguments[...]
        var leading: [String] = []
        while let first = rest.first {
            let name = String(first.prefix { $0 != "=" })
            if flags.contains(first) || first.contains("=") && valued.contains(name) {
                leading.append(rest.removeFirst())
            } else if valued.contains(first), rest.count > 1 {
                leading += [rest.removeFirst(), rest.removeFirst()]
            } else {
                break
            }
        }
        guard !leading.isEmpty, !rest.isEmpty else { return arguments }
        let end = rest.firstIndex(of: "--") ?? rest.endIndex
        return Array(rest[..<end]) + leading + Array(rest[end...])
    }
}
