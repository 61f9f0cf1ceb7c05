import ArgumentParser

/// Options for the form of the output.
struct OutputOptions: ParsableArguments {
    @Flag(help: "Print JSON for scripts instead of a table.")
    var json = false
}
