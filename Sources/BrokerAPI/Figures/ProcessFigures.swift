/// Figures of the process from the kernel.
public struct ProcessFigures: Sendable, Equatable {
    public var residentBytes = 0
    public var peakResidentBytes = 0
    /// User and system time of all threads.
    public var cpuSeconds = 0.0
    public var openDescriptors = 0
    public var descriptorLimit = 0

    public init() {}
}
