import Glibc
import OperatorCLI

exit(await Hermesctl.run(Array(CommandLine.arguments.dropFirst()), in: .process()))
