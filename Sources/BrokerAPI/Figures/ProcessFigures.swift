/// Figures of the process from the kernel.
package struct ProcessFigures: Sendable, Equatable {
    package var residentBytes = 0
    package var peakResidentBytes = 0
    /// User and system time of all threads.
    package var cpuSeconds = 0.0
    package var openDescriptors = 0
    package var descriptorLimit = 0

    package init() {}
}
