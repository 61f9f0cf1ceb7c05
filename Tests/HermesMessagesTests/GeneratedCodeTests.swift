import Glibc
import Testing

@Suite("Generated C code")
struct GeneratedCodeTests {
    @Test("remaking it from Protos/ changes nothing")
    func regenerationChangesNothing() throws {
        let resolved = try #require(realpath(#filePath, nil), "cannot resolve \(#filePath)")
        defer { free(resolved) }
        let root = String(cString: resolved).split(separator: "/").dropLast(3)
        let script = "/" + root.joined(separator: "/") + "/scripts/generate-protos"

        // A non-zero status means a difference or a missing protobuf-c-compiler, as the script
        // reports on standard error.
        #expect(try exitStatus(of: [script, "--check"]) == 0)
    }

    private func exitStatus(of command: [String]) throws -> Int32 {
        var arguments = command.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var child: pid_t = 0
        let failure = posix_spawn(&child, command[0], nil, nil, &arguments, environ)
        try #require(
            failure == 0, "cannot run \(command[0]): \(String(cString: strerror(failure)))")
        var status: Int32 = 0
        while waitpid(child, &status, 0) == -1 { try #require(errno == EINTR) }
        try #require(status & 0x7F == 0, "\(command[0]) was ended by signal \(status & 0x7F)")
        return (status >> 8) & 0xFF
    }
}
