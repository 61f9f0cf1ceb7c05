import Glibc

/// Arguments that the kernel has for this process, and that the program was not handed.
///
/// A library that is preloaded and takes the place of `main` can lose them. The broker would then run
/// with its defaults in place of its configuration, and let everybody in.
enum LostArguments {
    /// What to say; `nil` when nothing is lost, or when /proc is not mounted.
    static var message: String? {
        let given = givenByKernel
        let handed = CommandLine.arguments.count
        guard given > handed else { return nil }
        return """
            hermesd: \(given - handed) of its \(given - 1) arguments were lost, so its configuration is \
            not known. A preloaded library may hide them: see LD_PRELOAD, or give the settings by \
            environment and no arguments.
            """
    }

    /// How many arguments /proc/self/cmdline has, each with a zero byte behind it (proc(5)).
    private static var givenByKernel: Int {
        guard let file = fopen("/proc/self/cmdline", "re") else { return 0 }
        defer { fclose(file) }
        var count = 0
        while case let byte = getc(file), byte != EOF {
            if byte == 0 { count += 1 }
        }
        return count
    }
}
