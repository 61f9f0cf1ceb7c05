import FuzzChecks
import Glibc

/// libFuzzer calls this with each input; a claim that does not hold ends the process, and libFuzzer
/// keeps the input.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = [UInt8](UnsafeBufferPointer(start: start, count: count))
    do throws(CheckFailure) {
        try target.run(input, trace: trace)
    } catch {
        fatalError("\(target.rawValue): \(error)")
    }
    return 0
}

/// The claim to check; `scripts/fuzz` sets it.
private let target: FuzzCheck = {
    let name = environment("HERMES_FUZZ_TARGET") ?? ""
    guard let target = FuzzCheck(rawValue: name) else {
        let known = FuzzCheck.allCases.map(\.rawValue).joined(separator: ", ")
        print("hermes-fuzz: HERMES_FUZZ_TARGET is \"\(name)\"; set it to one of \(known).")
        exit(2)
    }
    return target
}()

/// Prints the steps of an input when `HERMES_FUZZ_TRACE` is set.
private let trace: (@Sendable (String) -> Void)? = {
    guard environment("HERMES_FUZZ_TRACE") != nil else { return nil }
    return { line in
        print(line)
        // The line must be out before a trap ends the process.
        fflush(nil)
    }
}()

private func environment(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }
}
