import FoundationEssentials

/// Figures for docs/client.md, which `HERMES_FIGURES=1` asks for.
enum Figures {
    static let areAsked = ProcessInfo.processInfo.environment["HERMES_FIGURES"] == "1"

    static func show(_ text: String) { if areAsked { print("figure: \(text)") } }
}
