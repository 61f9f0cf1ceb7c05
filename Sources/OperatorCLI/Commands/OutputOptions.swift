import ArgumentParser

/// How the result is shown.
struct OutputOptions: ParsableArguments {
    @Flag(help: "Print JSON for scripts instead of a table.")
    var json = false
}
